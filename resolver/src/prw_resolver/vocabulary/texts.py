"""Texts and addresses."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from prw_resolver.vocabulary.definitions import AttributeDefinition
from prw_resolver.vocabulary.statement import Reading, Statement, Unreadable, fold, says_nothing

_LONGEST = 500
_LONGEST_DESCRIPTION = 20_000
_MOST = 5 * _LONGEST_DESCRIPTION
_LONGEST_ADDRESS = 2_048
_MARKUP = re.compile(r"<[a-zA-Z/!][^<>]*>")


def text(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """The text with its white space folded and tags taken out: 500 characters, of a description 20,000.

    Lists of cases and of items are answered in one message, which no shop's title may burst.
    """
    longest = _LONGEST_DESCRIPTION if definition.key == "core:description" else _LONGEST
    # cut before it is folded: to put combining marks in order takes time that grows with their square
    bare = " ".join(_MARKUP.sub(" ", statement.text[:_MOST]).split())[:longest]
    folded = fold(bare)
    if says_nothing(folded, definition):
        return None
    return Reading(folded[:longest])


def url(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """An absolute http or https address of at most 2,048 characters; a relative one counts from the page's own."""
    stated = statement.text.strip()
    if says_nothing(stated, definition):
        return None
    try:
        found = urlsplit(urljoin(statement.base_url, stated))
    except ValueError as error:
        raise Unreadable("not an address") from error
    if found.scheme not in {"http", "https"} or not found.netloc:
        raise Unreadable("not an address of the web")
    if len(found.geturl()) > _LONGEST_ADDRESS:
        raise Unreadable("too long for an address")
    return Reading(found.geturl())


def is_web_address(url: str) -> bool:
    """Whether an address is an absolute one of the web, as nothing else may become a link."""
    try:
        found = urlsplit(url)
    except ValueError:
        return False
    return found.scheme in {"http", "https"} and bool(found.netloc)
