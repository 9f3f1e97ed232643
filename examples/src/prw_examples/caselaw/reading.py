"""What a capture of the portal states: its list row, its page, its document, and the court within the ECLI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from prw_sdk.adapter import Kind, NotARecord
from prw_sdk.evidence import Capture, Locator, Part, Presence, Selector, SelectorType
from prw_sdk.take import Leaf, json_leaves, labelled, page_leaves, parsed

DETAIL, ROW, DOCUMENT = "detail", "row", "document"
_PARTS_OF_AN_ECLI = 5
_LONGEST_HEADING = 300


def leaves(capture: Capture) -> tuple[Leaf, ...]:
    """Everything stated, the court of the ECLI first; raises `NotARecord` where there is no decision."""
    if capture.presence is Presence.ABSENT:
        raise NotARecord("the portal says that it does not have this decision")
    parts = {part.role: part for part in capture.parts}
    page = parts.get(DETAIL)
    title = page_leaves(page, "detail.title", "main h1") if page is not None else ()
    if page is None or not title:
        raise NotARecord("the page shows no decision")
    if page_leaves(page, "notice", "main .withdrawn"):
        raise NotARecord("the decision was withdrawn")
    found = [*title, *labelled(page, "main th", "detail")]
    found += _row(parts[ROW]) if ROW in parts else ()
    found += _document(parts[DOCUMENT]) if DOCUMENT in parts else ()
    return (*_courts(found), *found)


def _courts(found: Sequence[Leaf]) -> Iterator[Leaf]:
    """The court code of each ECLI (Council conclusions 2011/C 127/01: ``ECLI:country:court:year:number``)."""
    for leaf in found:
        pieces = leaf.text.strip().split(":")
        is_ecli = leaf.name in ("detail.ECLI", "row.ecli") and len(pieces) == _PARTS_OF_AN_ECLI
        if is_ecli and pieces[0] == "ECLI" and pieces[2].strip():
            yield Leaf("ecli.court", Kind.TEXT, pieces[2].strip(), _within(leaf, pieces[2].strip()))


def _within(leaf: Leaf, quote: str) -> Locator:
    """The place of a quote within a leaf's text."""
    inner = Selector(SelectorType.TEXT_QUOTE, quote)
    return replace(leaf.locator, selector=replace(leaf.locator.selector, refined_by=inner))


def _row(part: Part) -> Iterator[Leaf]:
    try:
        document = parsed(part.text())
    except ValueError:
        return
    rows = document.get("decisions") if isinstance(document, dict) else None
    if isinstance(rows, list) and rows:
        yield from json_leaves(rows[0], ROW, "/decisions/0", ROW)


def _document(part: Part) -> Iterator[Leaf]:
    """The first line, which names court and docket; the rest is the decision itself."""
    lines = [line.strip() for line in part.text().splitlines() if line.strip()]
    if lines and not part.media_type.startswith("text/html"):
        heading = lines[0][:_LONGEST_HEADING]
        where = Locator(DOCUMENT, Selector(SelectorType.TEXT_QUOTE, heading))
        yield Leaf("document.heading", Kind.TEXT, heading, where)
        yield Leaf("document.text", Kind.TEXT, heading, where)


def document_of(detail: Part) -> str | None:
    """Where the page links to its document, on the portal's own host; None where it links to none."""
    for leaf in page_leaves(detail, "document", "main a.document", "href"):
        url = urljoin(detail.url_reached, leaf.text)
        if urlsplit(url).netloc == urlsplit(detail.url_reached).netloc:
            return url
    return None
