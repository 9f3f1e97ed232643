"""What the author of an adapter writes, and what the runner hands to it.

An adapter has two halves. *Collect* (`plan`, `fetch`) runs at the collector and does its I/O through `Net` alone.
*Read* (`read`, `stated`) is plain Python over kept bytes, and runs wherever a capture is: at the collector in local
mode, at the resolver always, and again years later after a parser was mended.
"""

from prw_sdk.adapter.base import (
    Adapter,
    NotARecord,
)
from prw_sdk.adapter.declare import (
    AdapterSettings,
    Backlog,
    Bound,
    Disposition,
    Excluded,
    Kind,
    Measure,
    Stated,
    Stored,
    covers,
    matching,
)
from prw_sdk.adapter.faults import (
    BACKLOG_BASELINE,
    declaration_faults,
)
from prw_sdk.adapter.net import (
    NO_RESPONSES,
    Batch,
    Checkpoint,
    Fetched,
    Net,
    NetFailed,
    Source,
    Target,
)

__all__ = [
    "BACKLOG_BASELINE",
    "NO_RESPONSES",
    "Adapter",
    "AdapterSettings",
    "Backlog",
    "Batch",
    "Bound",
    "Checkpoint",
    "Disposition",
    "Excluded",
    "Fetched",
    "Kind",
    "Measure",
    "Net",
    "NetFailed",
    "NotARecord",
    "Source",
    "Stated",
    "Stored",
    "Target",
    "covers",
    "declaration_faults",
    "matching",
]
