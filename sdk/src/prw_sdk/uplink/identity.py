"""Who a collector is, as its settings or its token say."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prw.errors import Code, PrwError
from prw_sdk.uplink.address import ResolverAddress


@dataclass(frozen=True, slots=True)
class Identity:
    """The provisioned worker and the stable instance that this collector is."""

    worker: str
    instance: str


def identity(resolver: ResolverAddress) -> Identity:
    """Worker and instance as the settings say, else as the token says; raises `PrwError` where neither does.

    The token is only read, not trusted: the resolver decides by its own binding.
    """
    claims = _claims(resolver.token())
    worker = resolver.worker or claims.get("worker_id")
    instance = resolver.instance or claims.get("sub")
    if not isinstance(worker, str) or not isinstance(instance, str):
        raise PrwError(
            Code.VALIDATION_FAILED,
            "the token names no worker or instance: give resolver.worker and resolver.instance",
            field="resolver.worker",
        )
    return Identity(worker, instance)


def _claims(token: str) -> Mapping[str, Any]:
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}
