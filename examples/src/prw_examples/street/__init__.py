"""The example street: three storefronts on one loopback port, and the truth about them."""

from __future__ import annotations

from prw_examples.street.catalogue import load_catalogue
from prw_examples.street.server import Street
from prw_examples.street.sources import source_settings, sources_toml
from prw_examples.street.truth import load_truth

__all__ = ["Street", "load_catalogue", "load_truth", "source_settings", "sources_toml"]
