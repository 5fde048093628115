import gzip
from collections.abc import Callable

import pytest
import zstandard

from toolkit.service import Access, Key, Site, Store

KEY = {"authorization": "Bearer s3cret"}


@pytest.fixture
def site(store: Store) -> Site:
    return Site(store, Access([Key("all", "s3cret")]), now_ms=lambda: 10**13, at_ms=lambda: 0)


def test_health_needs_no_key(site: Site) -> None:
    assert site.respond("GET", "/healthz", {}, b"").status == 200


@pytest.mark.parametrize("path", ["/", "/info/", "/nope", "/info/x", "//"])
def test_other_paths_are_not_found(site: Site, path: str) -> None:
    got = site.respond("POST", path, KEY, b'{"type":"meta"}')
    assert got.status == 404
    assert got.content.startswith(b'{"error":')


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "BREW"])
def test_other_methods_are_not_allowed(site: Site, method: str) -> None:
    got = site.respond(method, "/info", KEY, b'{"type":"meta"}')
    assert (got.status, got.headers["allow"]) == (405, "POST")
    assert got.content.startswith(b'{"error":')


@pytest.mark.parametrize(
    ("accepts", "name", "opened"),
    [
        ("gzip", "gzip", gzip.decompress),
        ("gzip, deflate, br, zstd", "zstd", lambda c: zstandard.ZstdDecompressor().decompress(c)),
        ("zstd;q=0, gzip;q=0.5", "gzip", gzip.decompress),
        ("*", "zstd", lambda c: zstandard.ZstdDecompressor().decompress(c)),
        ("", None, bytes),
        ("br", None, bytes),
        ("gzip;q=0", None, bytes),
        ("gzip;q=nonsense", None, bytes),
    ],
)
def test_answers_are_compressed_for_those_who_accept_it(
    site: Site, accepts: str, name: str | None, opened: Callable[[bytes], bytes]
) -> None:
    body = b'{"type":"meta"}'
    plain = site.respond("POST", "/info", KEY, body)
    assert "content-encoding" not in plain.headers
    got = site.respond("POST", "/info", {**KEY, "accept-encoding": accepts}, body)
    assert got.headers.get("content-encoding") == name
    assert opened(got.content) == plain.content
