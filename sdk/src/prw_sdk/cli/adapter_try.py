"""``prw adapter try`` and ``record``: one page fetched now, and what the adapter reads in it."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from prw_base.cli import FAILED
from prw_base.options import JsonOption
from prw_base.tables import print_json
from prw_sdk.adapter import Adapter
from prw_sdk.cli.adapter_evidence import leads_to, quoted
from prw_sdk.cli.adapter_fetch import (
    Asked,
    Contact,
    Currency,
    Identity,
    Locale,
    Private,
    Settings,
    Url,
    fetch_once,
    not_fetched,
)
from prw_sdk.cli.adapter_subject import AdapterOption, Unusable, guarded, subject_of
from prw_sdk.collect.reading import READ_FAILED, AdapterFailed, Reading, read
from prw_sdk.evidence import Capture, Claim, Part, Presence, Record
from prw_sdk.fetch.outcome import FetchFailed
from prw_sdk.testing import fixtures, scrub

_CASE = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_MOST_NAMES = 40
_LONGEST = 200


@guarded
def try_(
    url: Url,
    adapter: AdapterOption = None,
    setting: Settings = None,
    native_id: Identity = None,
    locale: Locale = "en_US",
    currency: Currency = None,
    allow_private: Private = False,
    contact: Contact = None,
    json: JsonOption = False,
) -> None:
    """Fetch one page, read it, and show every claim with the evidence around it; nothing is kept.

    Names that the page labels and no declaration covers are listed: declare them, or exclude them with a reason.
    """
    one = _instance(subject_of(adapter).adapter)
    asked = Asked(url, native_id, tuple(setting or ()), locale, currency, allow_private, contact)
    capture = _fetched(one, asked)
    reading = _reading(one, capture)
    if json:
        print_json(_as_json(capture, reading))
    else:
        _show(capture, reading, Console(highlight=False, markup=False, emoji=False))
    if not reading.records or reading.account.unknown:
        raise typer.Exit(FAILED)


@guarded
def record(
    url: Url,
    case: Annotated[
        str | None,
        typer.Option("--case", metavar="NAME", help="The fixture's name (default: of the URL)."),
    ] = None,
    adapter: AdapterOption = None,
    setting: Settings = None,
    native_id: Identity = None,
    locale: Locale = "en_US",
    currency: Currency = None,
    allow_private: Private = False,
    contact: Contact = None,
    folder: Annotated[
        Path | None,
        typer.Option("--fixtures", metavar="DIR", help="Where (default: the project's fixtures)."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over a fixture of that name.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Fetch one page, and keep it as a fixture without cookies, tokens and personal data.

    A page that is gone (404, 410) is kept as an absence, which makes the one failure that a suite needs.
    Texts that point to nobody can be let stand: one a line in allowed.txt beside the fixtures.
    """
    subject = subject_of(adapter, folder)
    name = _case(case, url, subject.fixtures, replace=replace)
    one = _instance(subject.adapter)
    asked = Asked(url, native_id, tuple(setting or ()), locale, currency, allow_private, contact)
    capture = _fetched(one, asked)
    allowed = fixtures.allowed(subject.fixtures)
    found = scrub.findings(capture, allowed)
    clean = scrub.scrubbed(capture, allowed)
    try:
        where = fixtures.write(subject.fixtures, name, clean)
    except OSError as refused:
        raise Unusable(f"--fixtures: {refused.filename}: {refused.strerror}") from refused
    reading = _reading(one, clean)
    _tell_recorded(where, clean, found, reading, json)


def _instance(adapter: type[Adapter]) -> Adapter:
    try:
        return adapter()
    except TypeError as unfinished:
        raise Unusable(f"{adapter.__name__} cannot be used yet: {unfinished}") from unfinished


def _fetched(adapter: Adapter, asked: Asked) -> Capture:
    try:
        return fetch_once(adapter, asked)
    except (FetchFailed, AdapterFailed) as failed:
        not_fetched(failed)


def _reading(adapter: Adapter, capture: Capture) -> Reading:
    if capture.presence is Presence.ABSENT:
        status = capture.parts[0].http_status
        return Reading(code="ABSENT", error=f"the source says that it is gone ({status})")
    return read(adapter, capture)


def _case(given: str | None, url: str, folder: Path, *, replace: bool) -> str:
    path = urlsplit(url).path.rstrip("/").rpartition("/")[2].lower()
    stem = re.sub(r"\.(html?|json|xml|php)$", "", path)
    name = given or re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:60] or "front-page"
    if not _CASE.fullmatch(name):
        raise Unusable(f"--case {name!r}: write lower-case letters, digits and hyphens")
    if (folder / name / fixtures.CAPTURE).exists() and not replace:
        raise Unusable(f"{folder / name} is there already: give another --case, or --replace")
    return name


def _tell_recorded(
    where: Path,
    capture: Capture,
    found: Iterable[scrub.Found],
    reading: Reading,
    json: bool,
) -> None:
    told = list(dict.fromkeys((one.what, one.where) for one in found))
    if json:
        scrubbed = [{"what": what, "where": place} for what, place in told]
        print_json({"fixture": str(where), "scrubbed": scrubbed, **_outcome(reading)})
        return
    typer.echo(f"{where}: {', '.join(map(_part_line, capture.parts))}")
    for what, place in told:
        typer.echo(f"scrubbed: {place}: {what}")
    if not told:
        typer.echo("scrubbed: nothing had to be")
    typer.echo(f"read: {_in_words(reading)}")
    if reading.account.unknown:
        typer.echo(f"not declared: {_listed(reading.account.unknown)}")
    typer.echo("Next: prw adapter check")


def _part_line(part: Part) -> str:
    media = part.media_type or "no media type"
    return f"{part.role} {part.http_status} {media}, {len(part.body):,} bytes"


def _in_words(reading: Reading) -> str:
    if not reading.records:
        return f"{reading.code}: {reading.error}"
    claims = sum(len(one.claims) + (one.merchant is not None) for one in reading.records)
    return f"{len(reading.records)} record(s), {claims} claims"


def _outcome(reading: Reading) -> dict[str, Any]:
    account = reading.account
    return {
        "outcome": reading.code or "RECORDS",
        "error": reading.error,
        "stored": list(account.stored),
        "excluded": list(account.excluded),
        "unknown": list(account.unknown),
        "unread": list(account.unread),
    }


def _as_json(capture: Capture, reading: Reading) -> dict[str, Any]:
    parts = {part.role: part for part in capture.parts}
    return {
        "native_record_id": capture.native_record_id,
        "presence": capture.presence.value,
        "parts": [
            {
                "role": part.role,
                "url": part.url_reached,
                "status": part.http_status,
                "media_type": part.media_type,
                "charset": part.charset_used,
                "bytes": len(part.body),
            }
            for part in capture.parts
        ],
        **_outcome(reading),
        "records": [
            {
                "record_id": one.record_id,
                "listing_key": one.listing_key,
                "merchant": one.merchant and one.merchant.value_as_stated,
                "claims": [_claim_json(claim, parts) for claim in _claims(one)],
            }
            for one in reading.records
        ],
    }


def _claim_json(claim: Claim, parts: Mapping[str, Part]) -> dict[str, Any]:
    part = parts.get(claim.locator.part_role)
    quote = None if part is None else quoted(claim, part)
    evidence = quote and {
        "before": quote.before,
        "text": quote.value,
        "after": quote.after,
        "line": quote.line,
    }
    leads = part is not None and leads_to(claim, part)
    return {**claim.as_json(), "leads_back": leads, "evidence": evidence}


def _claims(one: Record) -> Iterator[Claim]:
    if one.merchant is not None:
        yield one.merchant
    yield from one.claims


def _show(capture: Capture, reading: Reading, console: Console) -> None:
    if not sys.stdout.isatty():
        console.width = 1000
    for part in capture.parts:
        charset = f", {part.charset_used}" if part.charset_used else ""
        console.print(Text(f"{part.url_reached}\n  {_part_line(part)}{charset}"))
    parts = {part.role: part for part in capture.parts}
    for one in reading.records:
        key = Text(f"\nrecord {_plain(one.record_id)}", "bold")
        console.print(key.append(f"  listing {_plain(one.listing_key)}", "not bold dim"))
        if one.merchant is None:
            console.print(Text("  no merchant: such a listing is never accepted by rule", "yellow"))
        for claim in _claims(one):
            console.print(_claim_text(claim, parts))
    if not reading.records:
        style = "bold red" if reading.code == READ_FAILED else "bold yellow"
        console.print(Text(f"\n{reading.code}: {_plain(reading.error or '')}", style))
    _show_names(reading, console)


def _claim_text(claim: Claim, parts: Mapping[str, Part]) -> Text:
    part = parts.get(claim.locator.part_role)
    quote = None if part is None else quoted(claim, part)
    text = Text(f"  {claim.attribute} ", "cyan")
    text.append(_short(claim.value_as_stated), "bold")
    text.append(f"\n    {claim.locator.part_role}", "dim")
    if quote is not None:
        text.append(f" line {quote.line}: ", "dim")
        text.append(f"…{_plain(quote.before)}").append("»").append(
            _short(quote.value), "black on green"
        )
        return text.append("«").append(f"{_plain(quote.after)}…")
    if part is not None and leads_to(claim, part):
        return text.append(f" at {claim.locator.selector.value}", "dim")
    return text.append(f" the locator leads nowhere: {claim.locator.selector.as_json()}", "red")


def _show_names(reading: Reading, console: Console) -> None:
    account = reading.account
    told = (
        ("stored", account.stored, ""),
        ("excluded", account.excluded, "dim"),
        ("stored, and read in no record", account.unread, "red"),
        ("not declared", account.unknown, "bold red"),
    )
    console.print()
    for word, names, style in told:
        if names:
            console.print(Text(f"{word}: {_listed(names)}", style))


def _listed(names: Iterable[str]) -> str:
    some = sorted(map(_plain, names))
    more = len(some) - _MOST_NAMES
    return ", ".join(some[:_MOST_NAMES]) + (f" … and {more} more" if more > 0 else "")


def _short(text: str) -> str:
    """As much of a long text as can be looked at."""
    plain = _plain(text)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"


def _plain(text: str) -> str:
    """On one line, and without what would move a terminal's cursor."""
    folded = " ".join(text.split())
    return "".join(" " if unicodedata.category(one) in ("Cc", "Cf") else one for one in folded)
