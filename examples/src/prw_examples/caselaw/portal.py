"""A portal to collect from: the High Court of Varn publishes its own decisions, and some of other courts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape

from prw_sdk.testing.server import Site, answer

PAGE_SIZE = 2
PORTAL = "High Court of Varn"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision as the portal has it; `ecli` is empty where the court gave it none."""

    number: str
    title: str
    court: str
    ecli: str
    docket: str
    decided: str
    outcome: str
    keywords: str
    text: str
    is_withdrawn: bool = False


DECISIONS = (
    Decision(
        *("2024-117", "Delivery of a part that does not fit", PORTAL, "ECLI:XA:HGVAR:2024:117"),
        *("4 Cv 117/24", "2024-03-12", "Appeal dismissed", "sale; conformity"),
        "The seller named the part by its number, and the number was wrong.",
    ),
    # published by the portal, and decided by another court, as the ECLI says
    Decision(
        *("2024-204", "Price shown without its currency", PORTAL, "ECLI:XA:DCOST:2024:31"),
        *("2 C 31/24", "2024-05-02", "Claim allowed", "prices; information"),
        "A price without a currency is no price.",
    ),
    Decision(
        *("2023-009", "Returns within thirty days", "Magistrates of Oststrand", ""),
        *("M 9/23", "2023-01-20", "Claim allowed", "returns"),
        "The month had thirty days, and the thirtieth counts.",
    ),
    Decision(
        *("2022-500", "Withdrawn", PORTAL, "ECLI:XA:HGVAR:2022:500"),
        *("4 Cv 500/22", "2022-11-30", "", "", ""),
        is_withdrawn=True,
    ),
)

_ROWS = (("Court", "court"), ("ECLI", "ecli"), ("Docket number", "docket"), ("Decided", "decided"))
_MORE = (("Outcome", "outcome"), ("Keywords", "keywords"))


def build(site: Site) -> None:
    """Serve the list, and of each decision its row, its page and its document."""
    starts = range(0, len(DECISIONS), PAGE_SIZE)
    for page, start in enumerate(starts, 1):
        onward = f"/api/decisions?page={page + 1}" if start + PAGE_SIZE < len(DECISIONS) else None
        _serve_rows(site, f"page={page}", DECISIONS[start : start + PAGE_SIZE], onward)
    for one in DECISIONS:
        _serve_rows(site, f"number={one.number}", (one,), None)
        site.serve(f"/decisions/{one.number}", answer(_page(one)))
        text = f"{one.court}, {one.docket}\n\n{one.text}\n".encode()
        site.serve(
            f"/documents/{one.number}.txt", answer(text, content_type="text/plain; charset=utf-8")
        )


def _serve_rows(site: Site, query: str, some: tuple[Decision, ...], onward: str | None) -> None:
    rows = [_row(one) for one in some]
    body = json.dumps({"decisions": rows, "next": onward}).encode()
    site.serve(f"/api/decisions?{query}", answer(body, content_type="application/json"))


def _row(one: Decision) -> dict[str, str]:
    row = {"number": one.number, "court": one.court, "decided": one.decided}
    return {**row, "url": f"/decisions/{one.number}", **({"ecli": one.ecli} if one.ecli else {})}


def _page(one: Decision) -> bytes:
    if one.is_withdrawn:
        inner = f'<h1>{escape(one.title)}</h1><p class="withdrawn">This decision was withdrawn.</p>'
    else:
        labelled = [(label, str(getattr(one, name))) for label, name in (*_ROWS, *_MORE)]
        labelled += [("Published", "2024-06-01"), ("Parties", "A. v. B.")]
        rows = "".join(
            f"<tr><th>{label}:</th><td>{escape(value)}</td></tr>"
            for label, value in labelled
            if value
        )
        link = f'<a class="document" href="/documents/{one.number}.txt">The decision</a>'
        inner = f"<h1>{escape(one.title)}</h1><table>{rows}</table>{link}"
    head = f'<meta charset="utf-8"><title>{PORTAL}</title>'
    return (
        f"<!doctype html><html><head>{head}</head><body><main>{inner}</main></body></html>".encode()
    )


def source(site: Site) -> str:
    """The collector's settings for it."""
    return f"""
[[source]]
id = "src_varn"
adapter = "caselaw"
locale = "en_GB"
allow_private = ["127.0.0.1:{site.port}"]
[source.settings]
site = "{site.origin}"
"""
