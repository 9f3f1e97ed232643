"""From the spool to the resolver: register, put artifacts, submit captures, note receipts."""

from prw_sdk.uplink.address import ResolverAddress
from prw_sdk.uplink.send import Binding, Drained, Uplink

__all__ = ["Binding", "Drained", "ResolverAddress", "Uplink"]
