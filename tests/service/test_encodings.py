"""Content encodings of responses. docs/live_service.md, section 9; RFC 9110, section 12.5.3."""

import gzip

import zstandard

from toolkit.service.encodings import choose_encoding, compress_response
from toolkit.service.handler_messages import Response, json_response

LONG = b"[" + b"1," * 2_000 + b"1]"
SHORT = b"[1]"


def test_encoding_of_largest_weight_is_chosen():
    table = [
        ("gzip, deflate, br, zstd", "gzip"),  # equal weights
        ("zstd, gzip;q=0.9", "zstd"),
        ("GZIP;Q=0.5", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0, *", "zstd"),
        ("*;q=0", "identity"),
        ("", "identity"),
        ("br", "identity"),
        ("identity;q=0.1, gzip;q=0.5", "gzip"),
        ("gzip ; q=0.3 , zstd ; q=0.6", "zstd"),
        ("gzip;q=, br", "identity"),
        ("gzip;q=nan, zstd;q=0.1", "zstd"),
        (",,gzip,", "gzip"),
    ]
    assert [row for row in table if choose_encoding(row[0]) != row[1]] == []


def test_long_json_is_compressed():
    for content, encoding in ((SHORT, "gzip"), (LONG, "identity")):
        got = compress_response(json_response(content), encoding)
        assert (got.content, "content-encoding" in got.headers) == (content, False)
    read = {"gzip": gzip.decompress, "zstd": zstandard.decompress}
    for encoding, decompress in read.items():
        got = compress_response(json_response(LONG), encoding)
        assert got.headers["content-encoding"] == encoding
        assert got.headers["vary"] == "accept-encoding"
        assert decompress(got.content) == LONG


def test_finished_response_is_unchanged():
    packed = Response(200, {"content-type": "application/octet-stream"}, LONG)
    named = Response(200, {"content-type": "application/json", "content-encoding": "zstd"}, LONG)
    assert compress_response(packed, "gzip") is packed
    assert compress_response(named, "gzip").headers["content-encoding"] == "zstd"
    assert compress_response(named, "gzip").content is LONG
