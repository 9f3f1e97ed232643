"""Who may call a method: declared in its proto, read at start, checked at every call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor

from prw.errors import Code, PrwError
from prw.options.v1 import options_pb2
from prw_base.principal import Kind, Principal, Role

Authenticate = Callable[[str], Awaitable[Principal]]
"""Turns a bearer token into the caller; raises PrwError INVALID_TOKEN or CREDENTIAL_REVOKED."""


class UndeclaredMethod(RuntimeError):
    """A method does not declare who may call it, so the server does not start."""


@dataclass(frozen=True, slots=True)
class Access:
    """A method's declaration: any one of ``scopes``, or at least ``role``, or everybody."""

    scopes: frozenset[str]
    role: Role | None
    public: bool

    def check(self, principal: Principal) -> None:
        """Raise PrwError where ``principal`` may not call.

        MISSING_SCOPE and FORBIDDEN where the kind of caller fits and its grant does not,
        PERMISSION_DENIED where the method is not for its kind at all.
        """
        if self.public or self.scopes & principal.scopes:
            return
        if self.role is not None and principal.has_role(self.role):
            return
        raise self._denial(principal)

    def _denial(self, principal: Principal) -> PrwError:
        if principal.kind is Kind.MACHINE and self.scopes:
            needed = " or ".join(sorted(self.scopes))
            return PrwError(Code.MISSING_SCOPE, f"this method needs the scope {needed}")
        if principal.kind is Kind.PERSON and self.role is not None:
            return PrwError(Code.FORBIDDEN, f"this method needs the role {self.role.name.lower()}")
        kind = "persons" if self.scopes else "machines"
        return PrwError(Code.PERMISSION_DENIED, f"this method is not for {kind}")


def declared(service: str, methods: Iterable[str]) -> dict[str, Access]:
    """The declarations of ``methods`` of ``service`` (full proto name).

    Raises UndeclaredMethod, naming every method that declares nothing.
    """
    found = {name: _access(service, name) for name in methods}
    missing = sorted(name for name, access in found.items() if access is None)
    if missing:
        names = ", ".join(f"{service}/{name}" for name in missing)
        raise UndeclaredMethod(f"no option (prw.options.v1.access) on {names}")
    return {name: access for name, access in found.items() if access is not None}


def _access(service: str, method: str) -> Access | None:
    descriptor = _method(service, method)
    if descriptor is None:
        return None
    option = descriptor.GetOptions().Extensions[options_pb2.access]
    role = Role(option.role) if option.role else None
    access = Access(frozenset(option.scopes), role, option.public)
    return access if access.scopes or access.role or access.public else None


def _method(service: str, method: str) -> MethodDescriptor | None:
    try:
        found = descriptor_pool.Default().FindServiceByName(service)
    except KeyError:
        return None
    return found.methods_by_name.get(method)


def bearer_token(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The token of the ``authorization`` metadata; raises PrwError INVALID_TOKEN without one."""
    for key, value in metadata or ():
        if key.lower() == "authorization" and isinstance(value, str):
            scheme, _, token = value.partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
    raise PrwError(Code.INVALID_TOKEN, "the call carries no bearer token")
