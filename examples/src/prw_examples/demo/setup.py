"""What stands before anything runs: PostgreSQL, both databases, the catalogue, and who may call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from prw_base.files import write_private
from prw_base.principal import Role
from prw_base.server import provision
from prw_base.server.database import Database
from prw_base.server.postgres import Cluster, StartFailed, open_cluster
from prw_examples.demo.children import DemoFailed, Guard
from prw_examples.demo.layout import (
    CATALOG_NAME,
    COLLECTOR,
    PERSON,
    PRODUCT,
    SCOPE,
    WORKER,
    Layout,
)
from prw_examples.street import load_catalogue, source_settings
from prw_resolver.access import service as access
from prw_resolver.access.model import COLLECTOR_SCOPES, PRODUCT_SCOPES, ClientGrant, Source
from prw_resolver.access.service import Issuer
from prw_resolver.bootstrap import build_issuer
from prw_resolver.settings import ResolverSettings
from prw_resolver.vocabulary import service as vocabulary

Dsns = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Databases:
    """The server, and the DSNs of both databases by role."""

    cluster: Cluster
    resolver: Dsns
    product: Dsns


@contextmanager
def databases(layout: Layout, guard: Guard) -> Iterator[Databases]:
    """PostgreSQL in the state folder with both databases; it ends with the demo, whoever started it."""
    try:
        cluster = open_cluster(layout.root)
        if cluster.pid is not None:
            guard.watch("postgres", cluster.pid)
        resolver = provision.provision(
            cluster, provision.RESOLVER_DATABASE, provision.RESOLVER_ROLES
        )
        product = provision.provision(cluster, provision.PRODUCT_DATABASE, provision.PRODUCT_ROLES)
        yield Databases(cluster, resolver, product)
    except (StartFailed, FileNotFoundError) as failed:
        raise DemoFailed(str(failed)) from failed
    finally:
        Cluster("", layout.root / "postgres").stop()


async def found(layout: Layout, resolver: Dsns) -> None:
    """Put catalogue, sources and vocabulary, and give each caller a token; doing it again changes no facts.

    Sources get the trust that the street's settings state. Tokens of an earlier start are superseded.
    """
    settings = ResolverSettings(state_folder=layout.root)
    layout.root.joinpath("keys").mkdir(mode=0o700, exist_ok=True)
    async with await Database.open(resolver["resolver_app"], max_size=2) as db:
        await access.put_catalog(db, SCOPE.tenant_id, SCOPE.catalog_id, CATALOG_NAME)
        sources = tuple(_sources())
        for source in sources:
            await access.put_source(db, source)
        await vocabulary.publish(db, SCOPE.tenant_id, SCOPE.catalog_id)
        await _give_tokens(layout, build_issuer(settings, db), sources)


def _sources() -> Iterator[Source]:
    names = {shop.id: shop.name for shop in load_catalogue().shops}
    for held in source_settings(port=0):
        market = {"locale": held["locale"], "currency": held["currency"]}
        yield Source(
            SCOPE.tenant_id,
            SCOPE.catalog_id,
            held["id"],
            names[held["id"]],
            held["trusted"],
            market,
        )


async def _give_tokens(layout: Layout, issuer: Issuer, sources: tuple[Source, ...]) -> None:
    tenant, catalog = SCOPE.tenant_id, SCOPE.catalog_id
    collector = ClientGrant(
        tenant,
        catalog,
        COLLECTOR,
        COLLECTOR_SCOPES,
        WORKER,
        tuple(source.source_id for source in sources),
    )
    product = ClientGrant(tenant, catalog, PRODUCT, PRODUCT_SCOPES)
    made = {
        "collector": await access.provision_client(issuer, collector),
        "product": await access.provision_client(issuer, product),
        "operator": await access.provision_operator(
            issuer, tenant, catalog, PERSON, Role.OPERATOR_ADMIN
        ),
    }
    for name, provisioned in made.items():
        write_private(layout.token(name), provisioned.token.encode())
