"""HTTP/1.1 and HTTP/2 servers on loopback that keep their connections open, with TLS or without, and count them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import Event, RequestReceived

ROBOTS = b"User-agent: *\nAllow: /\n"
Talk = Callable[["Peer", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """A server: what it answers (path by path, raw or as a body), and what came in."""

    port: int = 0
    pages: dict[str, list[bytes]] = field(default_factory=dict)
    connections: int = 0
    asked: list[str] = field(default_factory=list)
    reset: set[str] = field(default_factory=set)

    def take(self, path: str) -> bytes:
        """The next answer of a path; the last one repeats."""
        self.asked.append(path)
        answers = self.pages[path]
        return answers.pop(0) if len(answers) > 1 else answers[0]


def kept_alive(body: bytes, *, stated: int | None = None, more: str = "") -> bytes:
    """An HTTP/1.1 answer after which the connection stays open."""
    length = len(body) if stated is None else stated
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n{more}\r\n"
    return head.encode() + body


async def talk_http1(
    peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one request after another; a path in `reset` ends the connection after its answer."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        path = head.split(b" ")[1].decode()
        writer.write(peer.take(path))
        await writer.drain()
        if path in peer.reset:
            return


async def talk_http2(
    peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer every stream with the body of its path; a path in `reset` has its stream cut."""
    connection = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    while data := await reader.read(65536):
        for event in connection.receive_data(data):
            _answer_http2(peer, connection, event)
        writer.write(connection.data_to_send())
        await writer.drain()


def _answer_http2(peer: Peer, connection: H2Connection, event: Event) -> None:
    if not isinstance(event, RequestReceived):
        return
    path = dict(event.headers)[b":path"].decode()
    stream, body = event.stream_id, peer.take(path)
    length = str(len(body) + (100 if path in peer.reset else 0))
    headers = [(":status", "200"), ("content-type", "text/html"), ("content-length", length)]
    connection.send_headers(stream, headers)
    connection.send_data(stream, body)
    if path in peer.reset and len(peer.pages[path]) > 1:
        connection.reset_stream(stream)
    else:
        connection.end_stream(stream)


@asynccontextmanager
async def listening(
    talk: Talk = talk_http1, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Peer]:
    """A running server whose robots.txt allows everything."""
    peer = Peer()
    peer.pages["/robots.txt"] = [ROBOTS if talk is talk_http2 else kept_alive(ROBOTS)]

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        try:
            await talk(peer, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            # the client went, as clients do
            return
        finally:
            writer.close()

    server = await asyncio.start_server(accept, host, 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    async with server:
        yield peer


class Authority:
    """A certificate authority of a test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of tests")])
        made = self._made(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.file = folder / "authority.pem"
        self._write(self.file, made)

    def server(self, host: str, *protocols: str) -> ssl.SSLContext:
        """A server's context with a certificate for `host`; `protocols` are offered by ALPN."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        self._write(
            self._folder / "server.pem", self._made(name, key).add_extension(names, critical=False)
        )
        (self._folder / "server.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "server.pem", self._folder / "server.key")
        context.set_alpn_protocols(list(protocols))
        return context

    def _made(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(hours=1))
        )

    def _write(self, path: Path, builder: x509.CertificateBuilder) -> None:
        signed = builder.sign(self._key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
