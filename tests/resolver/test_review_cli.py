"""`prw resolver review` as a reviewer types it, against a served resolver."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.resolver.calling import served
from tests.resolver.catalogue import UNTRUSTED, record, rooms

PRW = Path(sys.executable).with_name("prw")
WHY = ("--rationale", "it is plain to see")


@dataclass(frozen=True, slots=True)
class Desk:
    """A reviewer at a terminal, with a token file."""

    address: str
    token: Path

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit status, and what was printed and complained of."""
        process = await asyncio.create_subprocess_exec(
            PRW,
            *("resolver", "review", *arguments),
            env=os.environ | {"PRW_OPERATOR_TOKEN_FILE": str(self.token), "PRW_LOG_LEVEL": "error"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    async def here(self, *arguments: str) -> tuple[int, str, str]:
        """The same, at the resolver of the test."""
        return await self.run(*arguments, "--address", self.address)


@pytest.fixture
async def desk(resolver_database: dict[str, str], tmp_path: Path) -> AsyncIterator[Desk]:
    """A resolver with one case: a shop that is not trusted states a new key."""
    token = tmp_path / "token"
    token.write_text("reviewer")
    async with rooms(resolver_database["resolver_app"], tmp_path) as held, served(held) as serving:
        subject = record(held.vocabulary, "m", source_id=UNTRUSTED, core__gtin="G-m")
        job = f"{subject.capture_id}:identify:0"
        await held.identifier.identify(subject, held.vocabulary, job_id=job, last=False)
        yield Desk(f"127.0.0.1:{serving.server.port}", token)


async def only_case(desk: Desk) -> dict[str, Any]:
    """The one case, as `list --json` has it."""
    status, out, err = await desk.here("list", "--json")
    assert status == 0, err
    (case,) = json.loads(out)
    found: dict[str, Any] = case
    return found


async def test_a_case_is_listed_shown_and_decided(desk: Desk) -> None:
    """What people see, and where each value stands in the stored bytes."""
    case_id = (await only_case(desk))["case_id"]
    status, out, _ = await desk.here("show", case_id)
    assert (status, case_id in out, "page → " in out) == (0, True, True)
    status, out, err = await desk.here(
        "decide", case_id, "accept", "--create-item", "--revision", "1", *WHY, "--json"
    )
    assert status == 0, err
    (decided,) = json.loads(out)
    assert (decided["case_id"], int(decided["case_revision"])) == (case_id, 2)
    assert (await desk.here("list"))[1] == "Cases: none\n"


async def test_two_destinations_are_refused(desk: Desk) -> None:
    """Nobody guesses which of them was meant."""
    decide = ("decide", "case_x", "accept", "--revision", "1", *WHY)
    status, _, err = await desk.here(*decide, "--create-item", "--map-to", "itm_x")
    assert status == 1
    assert err.startswith("prw: VALIDATION_FAILED: --map-to: ")


async def test_a_resolver_elsewhere_is_spoken_to_over_tls(desk: Desk, tmp_path: Path) -> None:
    """The token does not cross a network in clear text; what cannot be reached or read is one line."""
    for address, option, said in (
        ("resolver.invalid:443", (), "prw: UNAVAILABLE: "),
        ("127.0.0.1:1", (), "prw: UNAVAILABLE: "),
        (desk.address, ("--ca", str(tmp_path)), "prw: VALIDATION_FAILED: --ca: "),
        (desk.address, ("--token-file", str(tmp_path)), "prw: INVALID_TOKEN: --token-file: "),
    ):
        status, _, err = await desk.run("list", "--address", address, *option)
        assert status != 0
        assert err.startswith(said)
        assert err.count("\n") == 1
