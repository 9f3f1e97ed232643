"""Pauses that hosts ask for: how long they are heeded, that they are told, and how an operator ends one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from prw_sdk.fetch.polite import HostBusy, HostGates, Politeness, clear_pause
from tests.sdk.commanding import invoke, summary
from tests.sdk.jobs import net_config, page
from tests.sdk.misbehaving import Site, answer
from tests.support.waiting import until

Shop = Callable[..., None]
DAY = {"Retry-After": "86400"}


async def busy(net: HttpNet, url: str) -> FetchFailed:
    """How asking fails."""
    with pytest.raises(FetchFailed) as failed:
        await net.get(url, role="page")
    return failed.value


async def test_a_pause_is_heeded_no_longer_than_the_settings_say(site: Site) -> None:
    """A host that asks for a day is left alone for an hour; it is told once, as it begins."""
    told: list[tuple[str, float, float]] = []
    net = HttpNet(
        net_config(site),
        HostGates(Politeness(1000, 16)),
        paused=lambda *pause: told.append(pause),
    )
    url = site.serve("/a", answer(status=429, headers=DAY))
    host = f"127.0.0.1:{site.port}"
    try:
        assert (await busy(net, url)).outcome is Outcome.RATE_LIMITED
        later = await busy(net, site.serve("/b", page("B")))
    finally:
        await net.aclose()
    assert later.outcome is Outcome.HOST_BUSY
    assert later.retry_after is not None
    assert 3500 < later.retry_after.total_seconds() <= 3600
    assert told == [(host, 86400.0, 3600.0)]


async def test_a_pause_that_is_cleared_is_over_for_those_who_run_as_well() -> None:
    """They look at it again before their next turn."""
    gates = HostGates(Politeness(1000, 16))

    async def is_open() -> bool:
        try:
            async with gates.turn("shop.example", 0):
                return True
        except HostBusy:
            return False

    assert gates.pause("shop.example", 86_400) == 3600
    assert not await is_open()
    assert 3500 < clear_pause("shop.example") <= 3600
    assert clear_pause("shop.example") == 0
    await until(is_open)
    gates.close()


def test_a_run_tells_of_a_pause_and_retry_ends_it(
    site: Site, shop: Shop, config: Path, tmp_path: Path
) -> None:
    """The items alone are not enough: their host is named as well."""
    text = config.read_text("utf-8")
    config.write_text(text.replace("at_once = 8", "at_once = 8, longest_pause = 600.0"), "utf-8")
    shop(a=answer(status=429, headers=DAY))
    run = ("run", "-c", config, "--local", tmp_path / "spool", "--json")
    first = invoke(*run)
    assert first.exit_code == 1
    events = [json.loads(line) for line in first.stderr.splitlines()]
    (paused,) = [one for one in events if one["event"] == "paused"]
    host = paused["host"]
    assert (paused["source"], paused["code"]) == ("src_list", "HOST_PAUSED")
    assert "asked for a pause of 86400 s, and is asked nothing for 600 s" in paused["error"]
    site.serve("/p/a", page("A"))
    assert invoke("retry", tmp_path / "spool").exit_code == 0
    assert summary(invoke(*run))["kept"] == 0
    said = invoke("retry", tmp_path / "spool", "--host", host)
    assert said.exit_code == 0
    assert f"{host} may be asked again" in said.stderr
    assert summary(invoke(*run))["kept"] == 1


def test_a_host_alone_can_be_asked_again(config: Path) -> None:
    """Neither a folder nor a resolver is needed for that; a host without a pause is told as such."""
    result = invoke("retry", "--host", "shop.example", "-c", config)
    assert result.exit_code == 0
    assert "shop.example is not paused" in result.stderr
