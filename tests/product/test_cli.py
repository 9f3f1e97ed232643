"""The programs as a user starts them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import httpx
import psycopg
import pytest

from prw_base.ids import uuid7
from prw_base.server.postgres import Cluster
from prw_base.server.provision import PRODUCT_ROLES, provision
from tests.product.events import CATALOG, TENANT, story
from tests.product.rpc import Resolver
from tests.support.waiting import until

_RUN = "from prw_base.cli import main; main()"


def _environment(dsns: dict[str, str]) -> dict[str, str]:
    return os.environ | {
        "PRW_PRODUCT_DATABASE_DSN": dsns["product_app"],
        "PRW_PRODUCT_OWNER_DSN": dsns["owner"],
        "PRW_PRODUCT_TENANT_ID": TENANT,
        "PRW_PRODUCT_CATALOG_ID": CATALOG,
    }


async def _run(dsns: dict[str, str], *arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _RUN, "product", *arguments),
        env=_environment(dsns),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A token, as a file."""
    path = tmp_path / "token"
    path.write_text("token\n")
    return path


async def test_one_process_serves_and_follows(
    resolver: Resolver, product_database: dict[str, str], token_file: Path, tmp_path: Path
) -> None:
    """``serve --follow``: addresses in the ready file, HTTP beside gRPC, exit 0 after SIGTERM."""
    resolver.changes = story()
    ready = tmp_path / "ready.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _RUN, "product", "serve", "--follow"),
        *("--http", "127.0.0.1:0", "--address", "127.0.0.1:0", "--ready-file", str(ready)),
        *("--resolver", f"127.0.0.1:{resolver.port}", "--token-file", str(token_file)),
        env=_environment(product_database),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(ready.exists)
        told = json.loads(ready.read_text())
        assert (told["pid"], told["address"].startswith("127.0.0.1:")) == (process.pid, True)
        await until(lambda: resolver.reported == 12)
        async with httpx.AsyncClient(base_url=told["url"]) as client:
            assert (await client.get("/healthz")).json()["public_items"] == 2
            page, head = await client.get("/"), await client.head("/")
            assert "€129.90" in page.text
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(page.content))
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    status, out, _ = await _run(product_database, "status", "--json")
    (row,) = json.loads(out)
    assert (status, row["progress"], row["public_items"], row["public_listings"]) == (0, 12, 2, 3)


async def test_following_without_a_token_says_what_is_missing(
    product_database: dict[str, str],
) -> None:
    """Not authorised is exit status 4, with the code and what to do."""
    status, _, err = await _run(product_database, "follow")
    assert status == 4
    assert "prw: INVALID_TOKEN" in err


async def test_a_token_is_not_sent_across_a_network_in_the_open(
    product_database: dict[str, str], token_file: Path
) -> None:
    """Without TLS only this machine gets it; a token file that is not there is told as such."""
    asked = ("follow", "--resolver", "resolver.example:7600", "--token-file")
    status, _, err = await _run(product_database, *asked, str(token_file))
    assert (status, "over TLS only" in err) == (1, True)
    asked = ("follow", "--resolver", "127.0.0.1:1", "--token-file")
    status, _, err = await _run(product_database, *asked, str(token_file) + ".none")
    assert (status, "prw: INVALID_TOKEN" in err) == (4, True)


async def test_a_superuser_is_refused(product_database: dict[str, str]) -> None:
    """A server never runs as a role that row-level security does not bind."""
    dsns = product_database | {"product_app": product_database["superuser"]}
    status, _, err = await _run(dsns, "status")
    assert status != 0
    assert "row-level security" in err


@pytest.mark.parametrize("command", ["serve", "follow", "status"])
async def test_a_database_that_was_not_migrated_is_told_in_one_line(
    cluster: Cluster, product_database: dict[str, str], token_file: Path, command: str
) -> None:
    """No program starts half: exit 1, and what to run."""
    name = f"empty_{uuid7().hex}"
    dsns = provision(cluster, name, PRODUCT_ROLES)
    try:
        token = () if command == "status" else ("--token-file", str(token_file))
        status, out, err = await _run(product_database | dsns, command, *token)
    finally:
        with psycopg.connect(cluster.dsn, autocommit=True) as admin:
            admin.execute(f"drop database {name} with (force)".encode())
    assert (status, out) == (1, "")
    (line,) = err.splitlines()
    assert "run `prw product migrate`" in line


async def test_migrating_again_changes_nothing(product_database: dict[str, str]) -> None:
    """The second run applies no migration; a status before anything was followed is empty."""
    assert (await _run(product_database, "migrate", "--json"))[:2] == (0, "[]\n")
    assert (await _run(product_database, "status", "--json"))[:2] == (0, "[]\n")
