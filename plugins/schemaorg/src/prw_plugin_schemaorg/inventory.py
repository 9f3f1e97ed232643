"""The declarations: what a shop serves for one product, and what it labels there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from prw_plugin_schemaorg.vocabulary import (
    AVAILABILITY,
    CURRENCY,
    OFFER,
    OFFER_SELLER,
    OPENGRAPH,
    OPENGRAPH_AVAILABILITY,
    OPENGRAPH_PRICES,
    PRICE,
    PRODUCT,
    SELLER,
    SITE_NAME,
    SITE_TYPES,
    URL,
    Paths,
)
from prw_sdk.adapter import Disposition, Excluded, Stored

SURFACES: Mapping[str, Disposition] = MappingProxyType(
    {
        "product-page": Stored("page"),
        "sitemap": Excluded(
            "an index over the whole shop; of a product it holds the address alone"
        ),
        "category-page": Excluded("a list of links to products, each fetched as itself"),
        "variant-page": Excluded(
            "a target of its own where the sitemap lists it, else the same page"
        ),
        "product-image": Excluded("the picture itself; its address is kept as core:image"),
        "review-page": Excluded("what buyers say, which is no fact about the article"),
        "shop-interface": Excluded(
            "an interface of the shop's own software, which an adapter for that software reads"
        ),
    }
)


def _stored(prefix: str, paths: Paths) -> Iterator[tuple[str, Disposition]]:
    for attribute, names in paths.items():
        labelled = (name for name in names if not name.startswith("itemOffered."))
        yield from ((prefix + name, Stored(attribute)) for name in labelled)


def _prices() -> Iterator[tuple[str, Disposition]]:
    for path in ("offers", "offers.priceSpecification"):
        yield f"{path}.price", Stored(PRICE)
        yield f"{path}.priceCurrency", Stored(CURRENCY)
    yield "offers.lowPrice", Stored(PRICE)
    for amount, currency in OPENGRAPH_PRICES:
        yield amount, Stored(PRICE)
        yield currency, Stored(CURRENCY)


def _sellers() -> Iterator[tuple[str, Disposition]]:
    yield from ((f"offers.{path}", Stored(SELLER)) for path in OFFER_SELLER)
    yield from ((f"{kind}.name", Stored(SELLER)) for kind in SITE_TYPES)
    yield SITE_NAME, Stored(SELLER)


_LEFT_OUT: Mapping[tuple[str, ...], str] = {
    ("additionalProperty", "additionalProperty.*", "identifier", "identifier.*"): (
        "a property that stands for no attribute of the vocabulary; a source's `properties` can name it"
    ),
    ("additionalProperty.*.unitText", "additionalProperty.*.unitCode", "identifier.*.unitText"): (
        "the unit of a value, which stays beside it in the kept page"
    ),
    ("additionalProperty.*.quantity*", "identifier.*.quantity*"): (
        "a number whose unit is stated apart from it: alone it would be read as another one"
    ),
    ("additionalProperty.*.minValue", "additionalProperty.*.maxValue"): (
        "the bounds of a range, of which no value is the article's own"
    ),
    (
        "productID",
        "model",
        "model.*",
        "alternateName",
        "headline",
        "inProductGroupWithID",
        "productGroupID",
    ): ("a name within the shop or the brand; sku, mpn and gtin identify the article"),
    ("manufacturer", "manufacturer.*"): "the maker; part numbers are told apart by brand",
    ("review", "review.*", "reviews", "reviews.*", "aggregateRating", "aggregateRating.*"): (
        "what buyers say, which is no fact about the article"
    ),
    ("brand.*", "offers.seller.*", "offers.offeredBy.*", "seller", "seller.*"): (
        "more about the brand or seller than its name, by which it is known"
    ),
    ("image.*", "logo", "logo.*", "video", "video.*", "subjectOf", "subjectOf.*"): (
        "a picture or film about the article beside its main image"
    ),
    (
        "category",
        "category.*",
        "keywords",
        "audience",
        "audience.*",
        "slogan",
        "award",
        "award.*",
    ): ("the shop's own way of sorting and selling"),
    (
        "isRelatedTo",
        "isRelatedTo.*",
        "isSimilarTo",
        "isSimilarTo.*",
        "isAccessoryOrSparePartFor*",
    ): ("other articles, each fetched as itself"),
    ("variesBy", "isVariantOf", "hasVariant"): (
        "how the variants belong together; each is a record of its own"
    ),
    ("color", "color.*", "size", "size.*", "material", "material.*", "pattern", "pattern.*"): (
        "a trait that no class of the vocabulary asks for"
    ),
    ("weight", "weight.*", "width", "width.*", "height", "height.*", "depth", "depth.*"): (
        "a measure that no class of the vocabulary asks for"
    ),
    (
        "releaseDate",
        "productionDate",
        "purchaseDate",
        "countryOf*",
        "dateCreated",
        "dateModified",
    ): ("a date or place of making or writing, which no class of the vocabulary asks for"),
    ("mainEntityOfPage", "mainEntityOfPage.*", "sameAs", "potentialAction", "potentialAction.*"): (
        "where else the article is spoken of, or what a visitor may do"
    ),
    ("positiveNotes*", "negativeNotes*", "hasCertification*", "hasEnergyConsumptionDetails*"): (
        "an opinion or certificate that no class of the vocabulary asks for"
    ),
    ("breadcrumb", "breadcrumb.*", "inLanguage"): "the page's place in the shop, and its language",
    ("hasMerchantReturnPolicy*", "offers.hasMerchantReturnPolicy*", "offers.warranty*"): (
        "a merchant's policy, read from the merchant's own policy pages"
    ),
    ("shippingDetails*", "offers.shippingDetails*", "offers.deliveryLeadTime*"): (
        "a merchant's policy, read from the merchant's own policy pages"
    ),
    (
        "offers",
        "offers.availableDeliveryMethod*",
        "offers.acceptedPaymentMethod*",
        "offers.areaServed*",
    ): ("how the merchant sells, not what"),
    (
        *("offers.range.lowPrice", "offers.highPrice", "offers.offerCount"),
        *("offers.inventoryLevel*", "offers.eligible*"),
    ): "the bounds of several offers; a record is one offer",
    (
        "offers.priceValidUntil",
        "offers.validFrom",
        "offers.validThrough",
        "offers.availabilityStarts",
    ): ("how long the shop means to ask that price; a capture says when it was asked"),
    ("offers.priceSpecification*",): "a condition of the price beside the amount and its currency",
    (
        "offers.itemOffered*",
        "offers.name",
        "offers.description",
        "offers.category",
        "offers.image",
    ): ("the article again, stated by the product itself"),
    (
        "offers.businessFunction",
        "offers.potentialAction*",
        "offers.serialNumber",
        "offers.mainEntity*",
    ): ("how the offer is dealt with, not what it offers"),
    ("offers.identifier*", "offers.aggregateRating*", "offers.review*", "offers.leaseLength*"): (
        "a number or opinion about the offer alone"
    ),
    tuple(f"{kind}.*" for kind in SITE_TYPES): "the site's owner beyond its name",
    (
        *(
            "BreadcrumbList.*",
            "ListItem.*",
            "ItemList.*",
            "OfferCatalog.*",
            "SiteNavigationElement.*",
        ),
        *("WPHeader.*", "WPFooter.*", "WPSideBar.*", "SearchAction.*", "SearchResultsPage.*"),
    ): "the way through the shop, not the article",
    (
        *(
            "WebPage.*",
            "ItemPage.*",
            "CollectionPage.*",
            "FAQPage.*",
            "AboutPage.*",
            "ContactPage.*",
        ),
        *("Article.*", "BlogPosting.*", "NewsArticle.*", "HowTo.*", "Question.*", "QAPage.*"),
    ): "the page as a document, and texts beside the article",
    (
        *("LocalBusiness.*", "Store.*", "PostalAddress.*", "Place.*", "Person.*", "ContactPoint.*"),
        *("ElectronicsStore.*", "HomeGoodsStore.*", "DepartmentStore.*", "Brand.*"),
    ): "a branch, a place or a person, not what the article is or who offers it",
    ("3DModel.*", "ImageObject.*", "VideoObject.*", "MediaObject.*"): "a picture, film or model",
    (
        "Review.*",
        "AggregateRating.*",
        "Rating.*",
    ): "what buyers say, which is no fact about the article",
    ("PropertyValue.*", "Thing.*"): "something that the page does not tie to the article",
    (
        "og:type",
        "og:locale",
        "og:locale:*",
        "og:determiner",
        "og:rich_attachment",
        "og:updated_time",
    ): ("how the page wants to be shown when it is shared"),
    ("og:image:*", "og:video", "og:video:*", "og:audio", "og:audio:*", "og:see_also"): (
        "a picture, film or link beside the main image"
    ),
    ("twitter:*", "al:*", "fb:*"): "the same again for one network or app",
    ("article:*", "book:*", "business:*", "place:*", "profile:*", "video:*", "music:*"): (
        "a vocabulary for something other than products"
    ),
    (
        "product:original_price*",
        "product:pretax_price*",
        "product:shipping_cost*",
        "product:*weight*",
    ): ("another amount than the one that is asked"),
    (
        "product:category",
        "product:retailer*",
        "product:plural_title",
        "product:color",
        "product:size",
    ): ("the shop's own way of sorting and selling"),
    ("product:*",): "a trait that no class of the vocabulary asks for",
    ("og:*",): "a word of the shop's own under the prefix of OpenGraph, which does not know it",
}


def _excluded() -> Iterator[tuple[str, Disposition]]:
    for names, reason in _LEFT_OUT.items():
        yield from ((name, Excluded(reason)) for name in names)


FIELDS: Mapping[str, Disposition] = MappingProxyType(
    dict(
        (
            *_excluded(),
            *_stored("", PRODUCT),
            *_stored("offers.", OFFER),
            *_stored("", OPENGRAPH),
            *_stored("", {AVAILABILITY: OPENGRAPH_AVAILABILITY, URL: ("link.canonical",)}),
            *_prices(),
            *_sellers(),
        )
    )
)
