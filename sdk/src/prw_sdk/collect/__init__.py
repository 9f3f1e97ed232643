"""The run: what a source has is planned, fetched, kept in the spool, and passed only then."""

from prw_sdk.collect.checkpoints import CheckpointStore
from prw_sdk.collect.job import RunLimits, SourceJob
from prw_sdk.collect.run import collect

__all__ = ["CheckpointStore", "RunLimits", "SourceJob", "collect"]
