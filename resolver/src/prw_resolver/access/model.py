"""Callers as they are provisioned, and the rules for making a `Principal` of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from prw.errors import Code, PrwError
from prw_base.principal import Kind, Principal, Role

COLLECTOR_SCOPES: Final = (
    "workers:register",
    "workers:heartbeat",
    "artifacts:write",
    "captures:write",
    "receipts:read",
    "checkpoints:write",
)
"""What a collector needs."""

PRODUCT_SCOPES: Final = ("changes:read", "exports:read")
"""What a product service needs."""

SCOPES: Final = frozenset(COLLECTOR_SCOPES + PRODUCT_SCOPES)
"""Every scope that there is (contract, "Identity of callers")."""

ROLES: Final[Mapping[str, Role]] = MappingProxyType({role.name.lower(): role for role in Role})
"""Roles by the name that commands and tables use."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MARKET = {
    "locale": (re.compile(r"[a-z]{2,3}([_-][A-Za-z0-9]{2,8})*"), "de-DE"),
    "currency": (re.compile(r"[A-Z]{3}"), "EUR"),
}
"""Market hints of a source: how each is written, and an example."""


class Status(StrEnum):
    """How a credential stands."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    """A later client was provisioned for the same instance or person."""
    REVOKED = "revoked"
    """An operator ended it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What is on record about a client: exactly what a token may stand for, and never more."""

    kind: Kind
    tenant_id: str
    catalog_id: str
    subject: str
    client_id: str
    worker_id: str | None
    sources: frozenset[str]
    scopes: frozenset[str]
    role: Role | None
    status: Status

    def principal(self, subject: str) -> Principal:
        """The caller that a token with that `subject` authenticates.

        CREDENTIAL_REVOKED where the client is no longer active, INVALID_TOKEN where the token is another subject's.
        """
        if self.status is not Status.ACTIVE:
            raise PrwError(Code.CREDENTIAL_REVOKED, f"the client is {self.status}")
        if subject != self.subject:
            raise PrwError(Code.INVALID_TOKEN, "the token's subject is not the client's")
        return Principal(
            kind=self.kind,
            subject=self.subject,
            tenant_id=self.tenant_id,
            catalog_id=self.catalog_id,
            client_id=self.client_id,
            worker_id=self.worker_id,
            instance_id=self.subject if self.kind is Kind.MACHINE else None,
            sources=self.sources,
            scopes=self.scopes,
            role=self.role,
        )


@dataclass(frozen=True, slots=True)
class ClientGrant:
    """What an operator grants to one machine.

    `instance_id` is stable and becomes the token's subject; `worker_id` is whose key space its captures share, and
    None for a service that submits none.
    """

    tenant_id: str
    catalog_id: str
    instance_id: str
    scopes: tuple[str, ...]
    worker_id: str | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name("instance", self.instance_id)
        if self.worker_id is not None:
            check_name("worker", self.worker_id)
        unknown = sorted(set(self.scopes) - SCOPES)
        if unknown or not self.scopes:
            raise PrwError(
                Code.VALIDATION_FAILED,
                f"no such scope: {unknown[0] if unknown else '(none given)'}",
                field="scopes",
            )


@dataclass(frozen=True, slots=True)
class Source:
    """A source and how far it is trusted.

    `settings` are market hints, such as ``locale`` (BCP 47) and ``currency`` (ISO 4217). Only a trusted source may
    introduce new items by rule.
    """

    tenant_id: str
    catalog_id: str
    source_id: str
    name: str
    trusted_to_introduce: bool
    settings: Mapping[str, object]

    def __post_init__(self) -> None:
        check_name("source", self.source_id)
        for name, (rule, like) in _MARKET.items():
            stated = self.settings.get(name)
            if stated and not rule.fullmatch(str(stated)):
                message = f"{stated!r} is none; write it like {like}"
                raise PrwError(Code.VALIDATION_FAILED, message, field=name)


def check_name(what: str, name: str) -> str:
    """`name` where it is one that ids may have (letters, digits, ``_ . -``; 1–128); else VALIDATION_FAILED."""
    if not _NAME.fullmatch(name):
        raise PrwError(Code.VALIDATION_FAILED, f"{name!r} cannot name a {what}", field=f"{what}_id")
    return name


def role_named(name: str) -> Role:
    """The role of that lower-case name; VALIDATION_FAILED where there is none."""
    if name not in ROLES:
        known = ", ".join(ROLES)
        raise PrwError(Code.VALIDATION_FAILED, f"a role is one of {known}", field="role")
    return ROLES[name]


def missing(wanted: Iterable[str], granted: Iterable[str]) -> tuple[str, ...]:
    """What of `wanted` is not granted, sorted."""
    return tuple(sorted(set(wanted) - set(granted)))
