"""Which pages there are, read as often as it takes to have met every offer while the list moves.

A marketplace's list is alive: an offer that is sold moves all later ones to the page before, where the next request
does not look any more (it is skipped), and a new one moves them to the page after (it is met twice). So a pass over
the list is looked at as a whole: where an offer stood on two pages, or the stated total changed or is not what was
met, another pass follows, of which only those pages are kept that show an offer not met before. The passes end when
one brings nothing new, or with a complaint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from prw_plugin_marketplace_offers.records import ROLE, at, items
from prw_plugin_marketplace_offers.settings import OffersSettings, Paging
from prw_sdk.adapter import Batch, Checkpoint, Net, NetFailed, NotARecord, Target
from prw_sdk.evidence import Part
from prw_sdk.take import parsed

ACCEPT = "application/json"
COMPLETE = Checkpoint({"complete": True})


class Incomplete(Exception):
    """The list moved too much while it was read, or is longer than is followed; what was met is kept."""


@dataclass(slots=True)
class _Pass:
    """What one pass over the list has met: ids of items, the places they stood in, stated totals, what was new."""

    number: int
    is_whole: bool = True
    ids: set[str] = field(default_factory=set)
    places: int = 0
    totals: set[int] = field(default_factory=set)
    new: int = 0

    @property
    def total(self) -> int:
        """What the list says of its length; 0 where it says nothing."""
        return max(self.totals, default=0)

    @property
    def has_moved(self) -> bool:
        """Whether the list was another one at the end than at the beginning, as far as that can be seen."""
        met_twice = self.places > len(self.ids)
        return not self.is_whole or met_twice or len(self.totals) > 1 or self.total > len(self.ids)


@dataclass(frozen=True, slots=True)
class _At:
    """Where a pass stands: the address of a page, and the page's number."""

    address: str
    number: int


class Walk:
    """One run's passes. Pages that were read for the plan are handed to `fetch`, and not asked for twice."""

    def __init__(self, settings: OffersSettings, kept: dict[str, Part]) -> None:
        self._settings = settings
        self._kept = kept
        self._met: set[str] = set()

    async def batches(self, checkpoint: Checkpoint | None, net: Net) -> AsyncIterator[Batch]:
        """A batch for each page that shows an item not met before; after a checkpoint from the page after it."""
        state = {} if checkpoint is None else checkpoint.state
        start = _At(self._settings.url, self._settings.first)
        here, number = start, 1
        # where the settings name another list by now, how far the former one was says nothing
        if isinstance(state.get("next"), str) and state.get("of") == self._settings.url:
            here = _At(str(state["next"]), _whole(state.get("number"), start.number))
            number = _whole(state.get("pass"), 1)
        while True:
            # what an earlier attempt had met is not known any more, so its pass cannot be judged
            now = _Pass(number, is_whole=here == start)
            async for batch in self._pass(now, here, net):
                yield batch
            if self._is_enough(now):
                break
            here, number = start, number + 1
        # before the complaint, so that the next run begins anew
        yield Batch((), COMPLETE)
        if self._is_short(now):
            raise Incomplete(
                f"the list moved while it was read: {len(self._met)} of {now.total} items were met in {number} "
                "passes; raise `passes` or `tolerance`, or read smaller lists"
            )

    def _is_enough(self, now: _Pass) -> bool:
        if not now.has_moved or now.number >= self._settings.passes:
            return True
        return now.number > 1 and now.is_whole and not now.new and not self._is_short(now)

    def _is_short(self, now: _Pass) -> bool:
        missing = now.total - len(self._met)
        return now.is_whole and missing > now.total * self._settings.tolerance

    async def _pass(self, now: _Pass, here: _At | None, net: Net) -> AsyncIterator[Batch]:
        seen: set[str] = set()
        while here is not None and here.address not in seen:
            if len(seen) >= self._settings.most_pages:
                raise Incomplete(f"more than {self._settings.most_pages} pages: see `most_pages`")
            part = await self._asked(here, net, is_first=not seen)
            seen.add(here.address)
            ids = [] if part is None else self._note(now, part)
            if part is None or not ids:
                return
            after = self._after(part, here, now, len(ids))
            yield self._batch(now, here, after, ids, part)
            self._kept.pop(here.address, None)
            here = after

    def _batch(self, now: _Pass, here: _At, after: _At | None, ids: list[str], part: Part) -> Batch:
        """The page as a target where it shows something new, and where the pass goes on."""
        new = set(ids) - self._met
        self._met |= new
        now.new += len(new)
        name = f"page/{here.number}" + (f"~{now.number}" if now.number > 1 else "")
        if new:
            self._kept[here.address] = part
        then = None
        if after is not None:
            reached = {"pass": now.number, "number": after.number, "next": after.address}
            then = Checkpoint({**reached, "of": self._settings.url})
        return Batch((Target(name, here.address),) if new else (), then)

    async def _asked(self, here: _At, net: Net, *, is_first: bool) -> Part | None:
        """The page; None where there is none after the last one."""
        try:
            return await net.get(here.address, role=ROLE, accept=ACCEPT)
        except NetFailed as failed:
            if is_first or failed.status not in (400, 404, 410, 416, 422):
                raise
            return None

    def _note(self, now: _Pass, part: Part) -> list[str]:
        """The ids of a page's items."""
        settings = self._settings
        try:
            found = items(part, settings.items)
        except NotARecord as other:
            raise Incomplete(f"{part.url_asked}: {other}") from None
        ids = [one for item in found if (one := item.text(settings.id))]
        if found and not ids:
            raise Incomplete(f"{part.url_asked}: no item states {settings.id!r}: see `id`")
        now.ids.update(ids)
        now.places += len(set(ids))
        if settings.total is not None:
            total = at(parsed(part.text()), settings.total)
            now.totals |= {int(str(total))} if str(total).isdecimal() else set()
        return ids

    def _after(self, part: Part, here: _At, now: _Pass, count: int) -> _At | None:
        """Where the page after this one is; None after the last one."""
        settings, paging = self._settings, self._settings.paging
        if paging in (Paging.CURSOR, Paging.LINK):
            told = at(parsed(part.text()), settings.next)
            if not isinstance(told, str) or not told.strip():
                return None
            address = (
                urljoin(part.url_reached, told)
                if paging is Paging.LINK
                else _asking(settings.url, settings.parameter or "cursor", told)
            )
            return _At(address, here.number + 1)
        if paging is Paging.NONE or (now.is_whole and 0 < now.total <= now.places):
            return None
        name, value = settings.parameter or paging.value, str(here.number + 1)
        if paging is Paging.OFFSET:
            value = str(_offset(here.address, name) + count)
        return _At(_asking(settings.url, name, value), here.number + 1)


def _offset(address: str, name: str) -> int:
    given = dict(parse_qsl(urlsplit(address).query)).get(name, "0")
    return int(given) if given.isdecimal() else 0


def _asking(url: str, name: str, value: str) -> str:
    """The address with that parameter in its query, in the place of an earlier one."""
    parts = urlsplit(url)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != name]
    return urlunsplit(parts._replace(query=urlencode([*query, (name, value)])))


def _whole(value: object, usual: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else usual
