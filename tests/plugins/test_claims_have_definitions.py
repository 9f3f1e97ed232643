"""What the shipped adapters claim is defined in the packaged vocabulary, or is evidence alone and said to be."""

from __future__ import annotations

import pytest

from prw_plugin_rendered_shop import RenderedShop
from prw_sdk.adapter import Adapter
from tests.plugins.shipped import ADAPTERS, PLUGINS, claimed
from tests.resolver.statements import packaged

EVIDENCE_ALONE = {
    RenderedShop.name: {"policy:shipping", "policy:returns", "policy:warranty"},
}


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_every_claim_has_a_definition_or_is_documented_as_evidence_alone(
    adapter: type[Adapter],
) -> None:
    """No claim is without a meaning by oversight; those that are meant to be stand in the plugin's README."""
    keys = {claim.attribute for claim in claimed(adapter)}
    undefined = {key for key in keys if packaged().attribute(key) is None}
    assert undefined == EVIDENCE_ALONE.get(adapter.name, set())
    readme = (PLUGINS / adapter.name / "README.md").read_text("utf-8")
    assert [key for key in undefined if f"`{key}`" not in readme] == []
