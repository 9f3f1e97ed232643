"""Certificates of a test's own authority."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
LOOPBACK = x509.SubjectAlternativeName(
    [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate, its key, and the PEM files of both."""

    body: x509.Certificate
    secret: ec.EllipticCurvePrivateKey
    certificate: Path
    key: Path

    def sign(self, name: str) -> Identity:
        """An identity for this machine's loopback, beside this one's files."""
        secret = ec.generate_private_key(ec.SECP256R1())
        body = _unsigned(name, self.body.subject, secret).add_extension(LOOPBACK, critical=False)
        return _kept(self.key.parent, name, body.sign(self.secret, hashes.SHA256()), secret)


def authority(folder: Path, name: str) -> Identity:
    """A self-signed identity that may sign others."""
    secret = ec.generate_private_key(ec.SECP256R1())
    may_sign = x509.BasicConstraints(ca=True, path_length=0)
    unsigned = _unsigned(name, _named(name), secret).add_extension(may_sign, critical=True)
    return _kept(folder, name, unsigned.sign(secret, hashes.SHA256()), secret)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _unsigned(
    name: str, issuer: x509.Name, secret: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(issuer)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
    )


def _kept(
    folder: Path, name: str, body: x509.Certificate, secret: ec.EllipticCurvePrivateKey
) -> Identity:
    made = Identity(body, secret, folder / f"{name}.pem", folder / f"{name}.key")
    made.certificate.write_bytes(body.public_bytes(Encoding.PEM))
    plain = secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    made.key.write_bytes(plain)
    return made
