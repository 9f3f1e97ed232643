"""One tenant's catalogue: what a stream, a projection and almost every query is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """A catalogue of a tenant. Not to be taken for a caller's scopes, which are permissions."""

    tenant_id: str
    catalog_id: str

    @property
    def ids(self) -> dict[str, object]:
        """Both ids by name, as the parameters that a scope's statements share."""
        return {"tenant_id": self.tenant_id, "catalog_id": self.catalog_id}
