"""The demo from start to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from prw_examples.demo import programs, report, setup
from prw_examples.demo.audit.model import Figures
from prw_examples.demo.audit.service import audit
from prw_examples.demo.audit.store import Books, open_books
from prw_examples.demo.children import Children, Guard
from prw_examples.demo.collector import Run, Tally, collect, spooled, write_settings
from prw_examples.demo.layout import SCOPE, Layout
from prw_examples.demo.programs import Addresses
from prw_examples.demo.progress import Counts, View, showing
from prw_examples.demo.rest import Standing, stand, until_at_rest
from prw_examples.demo.setup import Databases
from prw_examples.street import load_truth

_LOOK_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    once: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """What the steps share: the processes, the databases' books, the view and the collector's tally.

    `kept_before` counts the captures that the spool held from earlier runs.
    """

    layout: Layout
    children: Children
    books: Books
    view: View
    tally: Tally
    kept_before: int

    async def look(self) -> Standing:
        """How things stand."""
        return await stand(self.books)

    def tell(self, standing: Standing) -> None:
        """Show how things stand."""
        resolver = standing.resolver
        self.view.counts(
            Counts(
                planned=self.tally.planned,
                settled=self.tally.settled,
                kept=self.kept_before + self.tally.kept,
                submitted=resolver.submitted,
                resolved=resolver.captures - resolver.unresolved,
                accepted=resolver.accepted,
                in_review=resolver.in_review,
                public_items=standing.public_items,
                positions=resolver.position,
            )
        )


def run(layout: Layout, options: Options) -> Figures | None:
    """Run the demo in a state folder; the figures, or None where it was stopped before there were any.

    DemoFailed where it cannot go on.
    """
    with showing(options.as_json) as view, _interruptible():
        view.step(f"PostgreSQL starts in {layout.root / 'postgres'}")
        with Guard(layout.lock) as guard, setup.databases(layout, guard) as databases:
            return asyncio.run(_run(layout, options, _Ground(guard, databases, view)))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Before and after the event loop a SIGTERM ends the demo as Ctrl-C does, so that nothing is left behind."""

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(number)

    before = {one: signal.signal(one, interrupt) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class _Ground:
    guard: Guard
    databases: Databases
    view: View


async def _run(layout: Layout, options: Options, ground: _Ground) -> Figures | None:
    figures: Figures | None = None
    try:
        with _cancelled_once():
            async with _stage(layout, ground) as stage:
                addresses = await _start(stage, ground.databases)
                collected = await _walk(stage)
                figures = await _conclude(stage, options, collected, addresses)
                if not options.once:
                    await stage.children.while_running(asyncio.Event().wait())
    except asyncio.CancelledError:
        ground.view.step("stopped")
    return figures


@contextmanager
def _cancelled_once() -> Iterator[None]:
    """The first signal cancels this task, which then ends everything in order; later ones change nothing."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def cancel() -> None:
        nonlocal task
        if task is not None:
            task.cancel()
            task = None

    for number in signals:
        loop.add_signal_handler(number, cancel)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _stage(layout: Layout, ground: _Ground) -> AsyncIterator[Stage]:
    databases, view = ground.databases, ground.view
    async with Children(layout.logs, ground.guard) as children:
        view.step("schemas are brought up to date")
        await programs.migrate(children, layout, databases)
        resolver, product = databases.resolver["superuser"], databases.product["superuser"]
        async with open_books(resolver, product, SCOPE) as books:
            yield Stage(layout, children, books, view, Tally(), spooled(layout).kept)


async def _start(stage: Stage, databases: Databases) -> Addresses:
    children, layout = stage.children, stage.layout
    stage.view.step("catalogue, sources, vocabulary and callers are put on record")
    await setup.found(layout, databases.resolver)
    stage.view.step("street, resolver and product start")
    street, resolver = await asyncio.gather(
        programs.start_street(children), programs.start_resolver(children, layout)
    )
    catalogue, product = await programs.start_product(children, layout, resolver)
    write_settings(layout, resolver, street)
    return Addresses(street, resolver, product, catalogue)


async def _walk(stage: Stage) -> Run:
    stage.view.step("the collector works")
    showing_it = asyncio.create_task(_show(stage))
    try:
        collected = await collect(stage.children, stage.layout, stage.tally)
    finally:
        showing_it.cancel()
        await asyncio.gather(showing_it, return_exceptions=True)
    await stage.children.while_running(until_at_rest(stage.look, stage.tell))
    stage.view.close()
    return collected


async def _show(stage: Stage) -> None:
    """Show how far it has come until nobody wants to know."""
    while True:
        stage.tell(await stage.look())
        await asyncio.sleep(_LOOK_SECONDS)


async def _conclude(
    stage: Stage, options: Options, collected: Run, addresses: Addresses
) -> Figures:
    stage.view.step(
        "both databases, the stored bytes and the truth file are held against each other"
    )
    figures = await stage.children.while_running(
        audit(stage.books, stage.layout.objects, load_truth(), collected.collected)
    )
    if options.as_json:
        report.print_figures(figures, addresses)
    else:
        report.print_report(collected.sources, figures, addresses, stage.layout)
        if not options.once:
            report.print_next(figures, addresses, stage.layout)
    return figures
