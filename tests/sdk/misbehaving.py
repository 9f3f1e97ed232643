"""The SDK's own misbehaving server, under the name that these tests know it by."""

from __future__ import annotations

from prw_sdk.testing.server import Site, answer, redirect, serving, zipped

__all__ = ["Site", "answer", "redirect", "serving", "zipped"]
