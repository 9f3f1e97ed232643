"""Who is calling: the value that the access interceptor binds and every use case reads.

All of it but the subject comes from the provisioned binding in the database, never from the
request and never from a claim that the client can choose (contract, "Identity of callers").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from prw.errors import Code, PrwError


class Kind(StrEnum):
    """What stands behind a credential."""

    MACHINE = "machine"
    PERSON = "person"


class Role(IntEnum):
    """A person's role in one tenant; a higher one may do all that a lower one may."""

    VIEWER = 1
    REVIEWER = 2
    OPERATOR_ADMIN = 3


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    ``subject`` is the stable instance or person; ``client_id`` is the credential and rotates.
    ``worker_id``, ``instance_id``, ``sources`` and ``scopes`` are a machine's, ``role`` a person's.
    """

    kind: Kind
    subject: str
    tenant_id: str
    catalog_id: str
    client_id: str
    worker_id: str | None = None
    instance_id: str | None = None
    sources: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    role: Role | None = None

    def has_role(self, least: Role) -> bool:
        """Whether this is a person whose role is at least ``least``."""
        return self.kind is Kind.PERSON and self.role is not None and self.role >= least


_current: ContextVar[Principal | None] = ContextVar("prw_principal", default=None)


def find_current() -> Principal | None:
    """The caller bound to this task, or None in a public method and outside of calls."""
    return _current.get()


def current() -> Principal:
    """The caller bound to this task.

    Raises PrwError INVALID_TOKEN where nobody is: code that needs a caller never runs without.
    """
    principal = _current.get()
    if principal is None:
        raise PrwError(Code.INVALID_TOKEN, "this needs an authenticated caller")
    return principal


@contextmanager
def bind(principal: Principal) -> Iterator[Principal]:
    """Make ``principal`` the caller within the block."""
    token = _current.set(principal)
    try:
        yield principal
    finally:
        _current.reset(token)
