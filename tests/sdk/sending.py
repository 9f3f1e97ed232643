"""A resolver's double as a collector calls it, and how far a spool's captures have come."""

from __future__ import annotations

from datetime import timedelta

from prw_base.client import Retry
from prw_sdk.spool.folder import Spool
from prw_sdk.spool.model import CaptureState
from prw_sdk.uplink import ResolverAddress
from tests.sdk.resolver_double import TOKEN, Intake


def resolver(intake: Intake, token: str = TOKEN) -> ResolverAddress:
    """The intake's address, with quick retries."""
    return ResolverAddress(
        intake.address,
        lambda: token,
        worker="cw_list",
        instance="ci_list_01",
        retry=Retry(4, timedelta(milliseconds=1), timedelta(milliseconds=50)),
    )


def states(spool: Spool) -> dict[CaptureState, int]:
    """How many captures are in each state."""
    return {state: n for (_, state), n in spool.ledger.states().items()}
