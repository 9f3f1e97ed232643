"""From the spool to the resolver: register, put artifacts, submit captures, note receipts."""

from prw_sdk.uplink.call import CallRetry, ResolverAddress
from prw_sdk.uplink.send import Binding, Drained, Uplink

__all__ = ["Binding", "CallRetry", "Drained", "ResolverAddress", "Uplink"]
