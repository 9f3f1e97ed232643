"""Encoded bodies: what a source may encode them in, and how little of a bomb or of a cut one gets through."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from prw_sdk.fetch.body import BadBody, decoded
from prw_sdk.fetch.http import HttpNet
from prw_sdk.fetch.outcome import FetchFailed, Outcome
from tests.sdk.misbehaving import Site, answer

PLAIN = b"<p>a page of a shop</p>" * 200
LIMIT = 1_000_000


def bare_deflate(body: bytes) -> bytes:
    """Deflate without its zlib wrapper, as some servers send it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def zstd(body: bytes) -> bytes:
    """One frame."""
    return zstandard.ZstdCompressor().compress(body)


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "bare-deflate": ("deflate", bare_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd),
}
packings = pytest.mark.parametrize("packing", PACKERS)


@packings
async def test_every_encoding_that_is_asked_for_is_decoded(
    site: Site, net: HttpNet, packing: str
) -> None:
    """What is kept are the bytes that the source encoded."""
    name, pack = PACKERS[packing]
    url = site.serve("/a", answer(pack(PLAIN), headers={"Content-Encoding": name}))
    assert (await net.get(url, role="page")).body == PLAIN
    sent = [headers["accept-encoding"] for path, headers in site.requests if path == "/a"]
    assert sent == ["gzip, deflate, br, zstd"]


@packings
async def test_an_encoded_body_that_ends_early_is_asked_for_again(
    site: Site, net: HttpNet, packing: str
) -> None:
    """Its length may be stated right: a proxy cut it, and stated what was left (T: truncated bodies)."""
    name, pack = PACKERS[packing]
    cut = answer(pack(PLAIN)[:-6], headers={"Content-Encoding": name})
    url = site.serve("/a", cut, answer(b"whole"))
    assert (await net.get(url, role="page")).body == b"whole"
    assert site.asked["/a"] == 2


@packings
def test_every_cut_of_an_encoded_body_is_noticed(packing: str) -> None:
    """Wherever it is cut, but before its first byte."""
    name, pack = PACKERS[packing]
    packed = pack(PLAIN)
    for end in range(1, len(packed)):
        with pytest.raises(BadBody) as bad:
            decoded(packed[:end], name, LIMIT)
        assert bad.value.outcome in (Outcome.TRUNCATED, Outcome.UNDECODABLE)


@packings
def test_a_bomb_is_given_up_soon_after_the_limit(packing: str) -> None:
    """Hundreds of megabytes in some kilobytes never come to stand in memory."""
    name, pack = PACKERS[packing]
    bomb = pack(bytes(200_000_000))
    tracemalloc.start()
    with pytest.raises(BadBody) as bad:
        decoded(bomb, name, LIMIT)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bad.value.outcome is Outcome.TOO_LARGE
    assert most < 40_000_000


@pytest.mark.parametrize(
    ("named", "pack"),
    [
        ("gzip, gzip", lambda body: gzip.compress(gzip.compress(body))),
        ("deflate, br", lambda body: brotli.compress(zlib.compress(body))),
        ("identity, GZIP ,", gzip.compress),
        ("none", bytes),
        ("identity", bytes),
        ("", bytes),
    ],
)
def test_encodings_are_undone_last_first(named: str, pack: Callable[[bytes], bytes]) -> None:
    """In the order in which they were applied (RFC 9110, section 8.4)."""
    assert decoded(pack(PLAIN), named, LIMIT) == PLAIN


@pytest.mark.parametrize("named", ["compress", "aws-chunked", "exi", ", ".join(["gzip"] * 5)])
def test_an_encoding_that_was_not_asked_for_is_not_guessed(named: str) -> None:
    """Bytes that cannot be decoded are no evidence."""
    with pytest.raises(BadBody) as bad:
        decoded(b"?", named, LIMIT)
    assert bad.value.outcome is Outcome.UNDECODABLE


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
async def test_what_only_says_that_it_is_encoded_is_asked_for_again(
    site: Site, net: HttpNet, name: str
) -> None:
    """It is no evidence as it stands."""
    lying = answer(b"<p>not encoded at all</p>", headers={"Content-Encoding": name})
    with pytest.raises(FetchFailed) as failed:
        await net.get(site.serve("/a", lying), role="page")
    assert failed.value.outcome in (Outcome.UNDECODABLE, Outcome.TRUNCATED)
    assert site.asked["/a"] == 3


def test_several_frames_and_members_are_one_body() -> None:
    """Streams that were put behind each other, and padding behind the last."""
    assert decoded(zstd(b"one ") + zstd(b"two"), "zstd", LIMIT) == b"one two"
    assert decoded(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0", "gzip", LIMIT) == (
        b"one two"
    )


def test_nothing_at_all_is_an_empty_body() -> None:
    """Whatever it is said to be encoded in, as some servers do with empty answers."""
    assert decoded(b"", "gzip", LIMIT) == b""


async def test_a_large_body_is_decoded_beside_the_loop(site: Site, net: HttpNet) -> None:
    """And is the same."""
    body = bytes(range(256)) * 8000
    packed = answer(
        zlib.compress(body, 0), headers={"Content-Encoding": "deflate"}, content_type="image/x"
    )
    assert (await net.get(site.serve("/a", packed), role="page")).body == body
