"""A gRPC server as a process has it: its signals and its address."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from prw.errors import Code, PrwError
from prw_base.server.rpc import RpcServer, RpcSettings


async def test_sigterm_drains_and_ends_the_process() -> None:
    """Exit status 0, and the port is free again."""
    code = (
        "import asyncio\nfrom prw_base import logs\nfrom prw_base.server.rpc import RpcServer\n"
        "logs.configure()\n"
        "async def main():\n"
        "    server = RpcServer(None)\n"
        "    serving = asyncio.create_task(server.serve())\n"
        "    while not server.port: await asyncio.sleep(0.01)\n"
        "    print(server.port, flush=True)\n"
        "    await serving\n"
        "    print('drained', flush=True)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        await stub.Check(health_pb2.HealthCheckRequest())
    os.kill(process.pid, signal.SIGTERM)
    rest, _ = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, rest.split()[-1]) == (0, b"drained")


async def test_two_servers_do_not_share_a_port_by_accident() -> None:
    """The second one fails to start, in place of taking half of the calls."""
    async with RpcServer(None) as first:
        other = RpcServer(None, RpcSettings(address=first.address))
        with pytest.raises(PrwError) as refused:
            await other.start()
    assert (refused.value.code, refused.value.field) == (Code.VALIDATION_FAILED, "address")
