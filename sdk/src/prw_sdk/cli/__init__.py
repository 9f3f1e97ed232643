"""The command group ``prw collect``."""

from prw_sdk.cli.app import app

__all__ = ["app"]
