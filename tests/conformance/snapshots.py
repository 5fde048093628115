"""Reads snapshots by the words of the specification alone."""

import io
import struct
from typing import Any

import msgpack
import zstandard

from tests.conformance.conftest import Caller

TYPES = {"accountValueSnapshots": "collateral_tokens", "perpTwapSnapshots": "market_names"}


def named(value: object) -> str:
    """Name a case alike in every process: by what is asked for, since sets have no order."""
    asked = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return str(value) if asked else "found"


def unpack(blob: bytes) -> Any:
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(blob)).read()
    return msgpack.unpackb(plain)


def blobs(content: bytes) -> list[bytes]:
    """Take the body of several snapshots apart, to its last byte."""
    (count,) = struct.unpack_from("<I", content)
    found, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("<I", content, at)
        found.append(content[at + 4 : at + 4 + length])
        assert len(found[-1]) == length
        at += 4 + length
    assert at == len(content)
    return found


def snapshots(caller: Caller, type: str, *wanted: str) -> dict[str, Any]:
    """Ask, and give what came by the name of its token or market."""
    status, headers, content = caller.raw({"type": type, TYPES[type]: list(wanted)})
    assert status == 200, content
    if headers["x-payload-format"] == "msgpack":
        found = [unpack(content)]
    else:
        found = [unpack(one) for one in blobs(content)]
    by_name = {one[1]: one for one in found}
    assert len(by_name) == len(found), "one came twice"
    return by_name
