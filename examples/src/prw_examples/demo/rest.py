"""Whether everything that was begun is done, and if not, what is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from prw_examples.demo.audit.store import Books, ProductStanding, ResolverStanding
from prw_examples.demo.children import DemoFailed

PATIENCE_SECONDS = 60.0
_STEP_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Standing:
    """How both services stand."""

    resolver: ResolverStanding
    product: ProductStanding
    public_items: int

    @property
    def at_rest(self) -> bool:
        """Whether nothing is left to do."""
        return not self.pending and not self.broken

    @property
    def pending(self) -> tuple[str, ...]:
        """What is still to be done, a phrase each."""
        resolver, product = self.resolver, self.product
        left = {
            "captures not resolved": resolver.unresolved,
            "jobs waiting or being worked": resolver.jobs,
            "cases to be identified again": resolver.wakes,
            "items to be released": resolver.releases_due,
            "changes not applied by the product": resolver.position - product.progress,
            "changes parked by the product": product.parked,
        }
        return tuple(f"{number} {what}" for what, number in left.items() if number)

    @property
    def broken(self) -> tuple[str, ...]:
        """What will not be done without a person, a sentence each."""
        return (
            *(f"dead letter of the resolver: {one}" for one in self.resolver.dead_letters),
            *(f"dead letter of the product: {one}" for one in self.product.dead_letters),
        )


async def stand(books: Books) -> Standing:
    """How things stand now; the resolver is asked first, so that its cursor is never ahead of the answer's."""
    resolver = await books.resolver_standing()
    product = await books.product_standing()
    return Standing(resolver, product, await books.public_items(product))


async def until_at_rest(
    look: Callable[[], Awaitable[Standing]],
    tell: Callable[[Standing], None],
    patience: float = PATIENCE_SECONDS,
) -> Standing:
    """Look again until everything is at rest.

    DemoFailed, naming what is stuck, where nothing has moved for `patience` seconds or something is broken.
    """
    loop = asyncio.get_running_loop()
    moved, before = loop.time(), None
    while not (now := await look()).at_rest:
        if now != before:
            moved, before = loop.time(), now
            tell(now)
        elif loop.time() - moved > patience:
            raise DemoFailed(f"nothing has moved for {patience:g} s: {', '.join(now.pending)}")
        if now.broken:
            raise DemoFailed("\n".join(now.broken))
        # Other processes do the work; only asking again finds out how far they are.
        await asyncio.sleep(_STEP_SECONDS)
    tell(now)
    return now
