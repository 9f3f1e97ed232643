"""The run: what a source has is planned, fetched, kept in the spool, and passed only then."""

from prw_sdk.collect.run import RunLimits, SourceJob, collect

__all__ = ["RunLimits", "SourceJob", "collect"]
