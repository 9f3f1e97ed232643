"""What a doctor finds: the same shape for every deployable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prw_base.tables import print_json

COLUMNS = ("check", "tenant_id", "catalog_id", "place", "what", "remedy")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: which check found it, where, what it is and what to do about it."""

    check: str
    tenant_id: str
    catalog_id: str
    place: str
    what: str
    remedy: str

    @property
    def row(self) -> tuple[str, ...]:
        """Its cells, as `COLUMNS` names them."""
        return (self.check, self.tenant_id, self.catalog_id, self.place, self.what, self.remedy)


def print_findings(checks: Sequence[str], findings: Sequence[Finding]) -> None:
    """Print as JSON what was checked and what was found."""
    found = [dict(zip(COLUMNS, finding.row, strict=True)) for finding in findings]
    print_json({"checks": list(checks), "findings": found})
