"""Page tokens: where the next page begins, opaque to the caller and bound to the query that it is of."""

from __future__ import annotations

import base64
import binascii
import json
import re

from prw.errors import Code, PrwError
from prw_base.canonical import canonical_json

# What the database keeps in no text, so that nothing stands after it.
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def make_token(after: tuple[str, ...], query: str) -> str:
    """The token of the page after the row with the sort key ``after``."""
    return base64.urlsafe_b64encode(canonical_json([*after, query])).decode().rstrip("=")


def read_token(token: str, query: str, parts: int = 1) -> tuple[str, ...] | None:
    """The sort key that the token's page begins after, of so many ``parts``; None for the first page.

    Raises PrwError VALIDATION_FAILED for what is no token, and for the token of another query.
    """
    if not token:
        return None
    try:
        padded = token + "=" * (-len(token) % 4)
        *after, bound_to = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise _refused("this is no page token") from error
    texts = all(isinstance(part, str) and not _NO_TEXT.search(part) for part in after)
    if bound_to != query or len(after) != parts or not texts:
        raise _refused("the page token belongs to another query")
    return tuple(after)


def _refused(message: str) -> PrwError:
    return PrwError(Code.VALIDATION_FAILED, message, field="page_token")
