"""Signed tokens: JWTs that say who calls, never what the caller may do.

One algorithm is pinned (ES256, RFC 7518) whatever a token's header says; issuer, audience, expiry
and not-before are checked (contract, "Identity of callers").
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from prw.errors import Code, PrwError
from prw_base.files import write_private
from prw_base.ids import new_id

ALGORITHM: Final = "ES256"
LEEWAY: Final = timedelta(seconds=30)
"""How far the clocks of issuer and verifier may differ."""

_REFUSED = (JoseError, ValueError, TypeError, OverflowError, RecursionError)
"""What a token made of anything at all can raise before its signature is known to be ours."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says.

    ``subject`` is the stable instance or person, ``client_id`` the credential, which rotates;
    ``token_id`` names this token.
    """

    subject: str
    client_id: str
    token_id: str
    issued_at: datetime
    expires_at: datetime


def load_or_create_key(path: Path) -> ECKey:
    """The signing key in ``path`` (PEM, mode 0600); the first call makes it, durably."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            write_private(path, ECKey.generate_key("P-256").as_pem(private=True))
    key = ECKey.import_key(path.read_bytes(), {"use": "sig", "alg": ALGORITHM})
    key.ensure_kid()
    return key


def jwks(*keys: ECKey) -> dict[str, Any]:
    """The public halves of ``keys`` as a JWK set (RFC 7517); during a rotation there are two."""
    return {"keys": [dict(key.as_dict(private=False)) for key in keys]}


class Signer:
    """Issues tokens of one ``issuer`` for one ``audience``."""

    def __init__(self, key: ECKey, issuer: str, audience: str) -> None:
        key.ensure_kid()
        self._key = key
        self._issuer = issuer
        self._audience = audience

    def sign(self, subject: str, client_id: str, lifetime: timedelta) -> str:
        """A token that is good from now on for ``lifetime``."""
        now = int(datetime.now(UTC).timestamp())
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": subject,
            "client_id": client_id,
            "jti": new_id("tok"),
            "iat": now,
            "nbf": now,
            "exp": now + int(lifetime.total_seconds()),
        }
        header = {"alg": ALGORITHM, "kid": self._key.kid}
        return jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])


class Verifier:
    """Verifies tokens against a JWK set."""

    def __init__(
        self, keys: Mapping[str, Any], issuer: str, audience: str, leeway: timedelta = LEEWAY
    ) -> None:
        self._keys = KeySet.import_key_set({"keys": list(keys["keys"])})
        self._rules = jwt.JWTClaimsRegistry(
            leeway=int(leeway.total_seconds()),
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            nbf={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            jti={"essential": True},
            client_id={"essential": True},
        )

    def verify(self, token: str) -> Claims:
        """What ``token`` says. Raises PrwError INVALID_TOKEN, without telling more than the kind."""
        try:
            claims = jwt.decode(token, self._keys, algorithms=[ALGORITHM]).claims
            self._rules.validate(claims)
            return _read(claims)
        except _REFUSED as error:
            reason = getattr(error, "error", "malformed")
            raise PrwError(Code.INVALID_TOKEN, f"the token was refused: {reason}") from error


def _read(claims: Mapping[str, Any]) -> Claims:
    return Claims(
        subject=str(claims["sub"]),
        client_id=str(claims["client_id"]),
        token_id=str(claims["jti"]),
        issued_at=datetime.fromtimestamp(claims["iat"], UTC),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
    )
