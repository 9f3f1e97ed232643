from __future__ import annotations

import hmac
import json
import stat
import threading
from base64 import urlsafe_b64encode
from datetime import timedelta
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from prw.errors import Code, PrwError
from prw_base.server.tokens import Signer, Verifier, jwks, load_or_create_key

HOUR = timedelta(hours=1)
ISSUER, AUDIENCE = "https://resolver.example", "prw-resolver"


@pytest.fixture
def key(tmp_path: Path) -> ECKey:
    """A signing key of its own."""
    return load_or_create_key(tmp_path / "signing.pem")


@pytest.fixture
def verifier(key: ECKey) -> Verifier:
    """Verifies what ``key`` has signed."""
    return Verifier(jwks(key), ISSUER, AUDIENCE)


def refused(verifier: Verifier, token: str) -> None:
    """``token`` is refused as INVALID_TOKEN."""
    with pytest.raises(PrwError) as raised:
        verifier.verify(token)
    assert raised.value.code is Code.INVALID_TOKEN


def test_a_token_says_who_calls(key: ECKey, verifier: Verifier) -> None:
    """Subject and client, and for how long."""
    claims = verifier.verify(Signer(key, ISSUER, AUDIENCE).sign("ins_1", "cli_1", HOUR))
    assert (claims.subject, claims.client_id) == ("ins_1", "cli_1")
    assert claims.expires_at - claims.issued_at == HOUR
    assert claims.token_id.startswith("tok_")


def test_tokens_differ_though_they_say_the_same(key: ECKey) -> None:
    """Each has an id of its own, so that one can be found in a log."""
    signer = Signer(key, ISSUER, AUDIENCE)
    assert signer.sign("a", "b", HOUR) != signer.sign("a", "b", HOUR)


@pytest.mark.parametrize(
    ("issuer", "audience", "lifetime"),
    [
        ("https://other.example", AUDIENCE, HOUR),
        (ISSUER, "prw-product", HOUR),
        (ISSUER, AUDIENCE, timedelta(minutes=-1)),
    ],
)
def test_issuer_audience_and_expiry_are_checked(
    key: ECKey, verifier: Verifier, issuer: str, audience: str, lifetime: timedelta
) -> None:
    """A token for somebody else, from somebody else or of yesterday."""
    refused(verifier, Signer(key, issuer, audience).sign("ins_1", "cli_1", lifetime))


def test_clocks_may_differ_a_little(key: ECKey, verifier: Verifier) -> None:
    """A leeway of 30 s."""
    token = Signer(key, ISSUER, AUDIENCE).sign("ins_1", "cli_1", timedelta(seconds=-5))
    assert verifier.verify(token).subject == "ins_1"


def test_another_key_is_refused(verifier: Verifier) -> None:
    """Whatever it calls itself."""
    other = ECKey.generate_key("P-256")
    refused(verifier, Signer(other, ISSUER, AUDIENCE).sign("ins_1", "cli_1", HOUR))


def test_the_algorithm_is_pinned(key: ECKey, verifier: Verifier) -> None:
    """Neither none nor an HMAC over our public key passes."""
    _, payload, _ = Signer(key, ISSUER, AUDIENCE).sign("ins_1", "cli_1", HOUR).split(".")
    header = urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": key.kid}).encode())
    signed = header.rstrip(b"=") + b"." + payload.encode()
    mac = hmac.digest(key.as_pem(private=False), signed, "sha256")
    refused(verifier, (signed + b"." + urlsafe_b64encode(mac).rstrip(b"=")).decode())
    refused(verifier, "eyJhbGciOiJub25lIn0.e30.")


@pytest.mark.parametrize(
    "token",
    [
        *("", "x", "a.b.c", "..", "é.é.é", "e30.e30.e30"),
        "eyJhbGciOiJFUzI1NiIsImNyaXQiOjF9.e30.eHh4",  # {"alg": "ES256", "crit": 1}
        urlsafe_b64encode(b"[" * 100_000).decode() + ".e30.eHh4",
    ],
)
def test_nonsense_is_refused_and_not_a_crash(verifier: Verifier, token: str) -> None:
    """Whatever stands in the header of a call."""
    refused(verifier, token)


@pytest.mark.parametrize("missing", ["exp", "nbf", "sub", "client_id", "iat", "jti"])
def test_a_token_without_a_claim_is_refused(key: ECKey, verifier: Verifier, missing: str) -> None:
    """A token that never expires is not one of ours."""
    good = jwt.decode(Signer(key, ISSUER, AUDIENCE).sign("a", "b", HOUR), key, ["ES256"]).claims
    del good[missing]
    refused(verifier, jwt.encode({"alg": "ES256", "kid": str(key.kid)}, good, key, ["ES256"]))


def test_both_keys_are_good_during_a_rotation(key: ECKey, tmp_path: Path) -> None:
    """The set holds the old and the new one."""
    new = load_or_create_key(tmp_path / "new.pem")
    verifier = Verifier(jwks(key, new), ISSUER, AUDIENCE)
    for signing in (key, new):
        token = Signer(signing, ISSUER, AUDIENCE).sign("ins_1", "cli_1", HOUR)
        assert verifier.verify(token).subject == "ins_1"


def test_the_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """Mode 0600, the same for every process, and only its public half is told."""
    path = tmp_path / "keys" / "signing.pem"
    ids: list[str | None] = []
    makers = [
        threading.Thread(target=lambda: ids.append(load_or_create_key(path).kid)) for _ in range(4)
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert len(set(ids)) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "d" not in jwks(load_or_create_key(path))["keys"][0]
