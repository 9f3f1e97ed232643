"""`CatalogService`: the public queries over gRPC (if_product_query)."""

from __future__ import annotations

from prw.catalog.v1 import catalog_service_pb2 as pb
from prw.catalog.v1 import catalog_service_pb2_grpc
from prw_base.server.rpc import Context
from prw_product.serve.model import Item, ItemQuery, Merchant, Offer
from prw_product.serve.service import Catalogue


class CatalogServicer(catalog_service_pb2_grpc.CatalogServiceServicer):
    """Translates to the catalogue and back."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def ListItems(
        self, request: pb.ListItemsRequest, context: Context
    ) -> pb.ListItemsResponse:
        query = ItemQuery(
            request.class_id or None,
            dict(request.attributes),
            request.page_size,
            request.page_token,
        )
        page = await self._catalogue.list_items(query)
        items = [item_message(item) for item in page.items]
        return pb.ListItemsResponse(items=items, next_page_token=page.next_page_token)

    async def GetItem(self, request: pb.GetItemRequest, context: Context) -> pb.GetItemResponse:
        item = await self._catalogue.get_item(request.item_id)
        return pb.GetItemResponse(item=item_message(item))

    async def ListMerchants(
        self, request: pb.ListMerchantsRequest, context: Context
    ) -> pb.ListMerchantsResponse:
        page = await self._catalogue.list_merchants(request.page_size, request.page_token)
        merchants = [_merchant(merchant) for merchant in page.merchants]
        return pb.ListMerchantsResponse(merchants=merchants, next_page_token=page.next_page_token)


def item_message(item: Item) -> pb.Item:
    """A released item as it travels."""
    return pb.Item(
        item_id=item.item_id,
        class_id=item.class_id,
        title=item.title,
        attributes=[pb.Attribute(key=a.key, value=a.value, unit=a.unit) for a in item.attributes],
        published_revision=item.published_revision,
        publication_revision=item.publication_revision,
        offers=[_offer(offer) for offer in item.offers],
    )


def _offer(offer: Offer) -> pb.Offer:
    message = pb.Offer(
        listing_id=offer.listing_id,
        merchant=_merchant(offer.merchant),
        title=offer.title,
        url=offer.url,
        price_amount=offer.price_amount or "",
        price_currency=offer.price_currency or "",
        availability=offer.availability,
    )
    if offer.observed_at is not None:
        message.observed_at.FromDatetime(offer.observed_at)
    return message


def _merchant(merchant: Merchant) -> pb.Merchant:
    return pb.Merchant(merchant_id=merchant.merchant_id, name=merchant.name)
