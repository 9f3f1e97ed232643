"""Texts and addresses."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

from prw_resolver.vocabulary.definitions import AttributeDefinition
from prw_resolver.vocabulary.statement import Reading, Statement, Unreadable, fold, says_nothing

_LONGEST = 20_000
_MARKUP = re.compile(r"<[a-zA-Z/!][^>]*>")


def text(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """The text with its white space folded and tags taken out, at most 20,000 characters."""
    folded = fold(_MARKUP.sub(" ", statement.text))
    if says_nothing(folded, definition):
        return None
    return Reading(folded[:_LONGEST])


def url(statement: Statement, definition: AttributeDefinition) -> Reading | None:
    """An absolute http or https address; a relative one is resolved against the page's own."""
    stated = statement.text.strip()
    if says_nothing(stated, definition):
        return None
    try:
        found = urlsplit(urljoin(statement.base_url, stated))
    except ValueError as error:
        raise Unreadable("not an address") from error
    if found.scheme not in {"http", "https"} or not found.netloc:
        raise Unreadable("not an address of the web")
    return Reading(found.geturl())
