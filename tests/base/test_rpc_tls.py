"""TLS and mTLS of a gRPC server, with certificates of an authority made here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from prw.errors import Code, PrwError
from prw_base.client import NEVER, Tls, call, open_channel
from prw_base.server.rpc import RpcServer, RpcSettings
from tests.support.certificates import Identity, authority

NOW = timedelta(0)


@dataclass(frozen=True, slots=True)
class Authorities:
    """One authority with a server's and a client's certificate, and a stranger's."""

    ours: Identity
    server: Identity
    client: Identity
    theirs: Identity
    stranger: Identity

    @property
    def tls(self) -> RpcSettings:
        """A server that is known by its certificate."""
        return RpcSettings(certificate=self.server.certificate, key=self.server.key, drain=NOW)

    @property
    def mutual(self) -> RpcSettings:
        """A server that lets in only whom our authority has signed."""
        certificate, key = self.server.certificate, self.server.key
        ours = self.ours.certificate
        return RpcSettings(certificate=certificate, key=key, client_authority=ours, drain=NOW)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    """Made once."""
    folder = tmp_path_factory.mktemp("pki")
    ours, theirs = authority(folder, "ours"), authority(folder, "theirs")
    return Authorities(
        ours, ours.sign("server"), ours.sign("client"), theirs, theirs.sign("stranger")
    )


def trusting(root: Identity, own: Identity | None = None) -> Tls:
    """What a client brings."""
    pair = (None, None) if own is None else (own.key.read_bytes(), own.certificate.read_bytes())
    return Tls(root.certificate.read_bytes(), *pair)


async def serving_status(server: RpcServer, tls: Tls | None) -> int:
    """What health says to a client that brings `tls`."""
    async with open_channel(f"127.0.0.1:{server.port}", tls=tls) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        request = health_pb2.HealthCheckRequest()
        answer = await call(stub.Check, request, timedelta(seconds=5), NEVER)
    return int(answer.status)


async def shut_out(server: RpcServer, tls: Tls | None) -> None:
    """The client gets no answer, and is told that the transport failed."""
    with pytest.raises(PrwError) as refused:
        await serving_status(server, tls)
    assert refused.value.code is Code.UNAVAILABLE


async def test_a_server_with_a_certificate_speaks_tls_only(pki: Authorities) -> None:
    """Known by its authority; a client without TLS, or with another authority, gets nothing."""
    async with RpcServer(None, pki.tls) as server:
        status = await serving_status(server, trusting(pki.ours))
        assert status == health_pb2.HealthCheckResponse.SERVING
        for wrong in (None, trusting(pki.theirs)):
            await shut_out(server, wrong)


async def test_with_a_client_authority_only_its_clients_get_in(pki: Authorities) -> None:
    """mTLS: no certificate, or one that another authority signed, ends the handshake."""
    async with RpcServer(None, pki.mutual) as server:
        status = await serving_status(server, trusting(pki.ours, pki.client))
        assert status == health_pb2.HealthCheckResponse.SERVING
        for own in (None, pki.stranger):
            await shut_out(server, trusting(pki.ours, own))


@pytest.mark.parametrize("name", ["certificate", "key", "client_authority"])
def test_half_of_a_tls_setting_is_refused(name: str) -> None:
    """What was meant to be encrypted is never served in the clear."""
    half: dict[str, Any] = {name: Path("some.pem")}
    with pytest.raises(PrwError) as refused:
        RpcSettings(**half)
    assert refused.value.code is Code.VALIDATION_FAILED


@pytest.mark.parametrize("written", [None, b"no certificate"])
async def test_a_certificate_that_is_none_keeps_the_server_from_starting(
    pki: Authorities, tmp_path: Path, written: bytes | None
) -> None:
    """VALIDATION_FAILED, whether the file is missing or holds something else."""
    certificate = tmp_path / "none.pem"
    if written is not None:
        certificate.write_bytes(written)
    server = RpcServer(None, RpcSettings(certificate=certificate, key=pki.server.key))
    with pytest.raises(PrwError) as refused:
        await server.start()
    assert refused.value.code is Code.VALIDATION_FAILED
    await server.stop(NOW)
