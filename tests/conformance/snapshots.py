"""Reading of snapshots, from the words of the specification only."""

import io
import struct

import msgpack
import zstandard

TYPES = {"accountValueSnapshots": "collateral_tokens", "perpTwapSnapshots": "market_names"}


def unpack(blob):
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(blob)).read()
    return msgpack.unpackb(plain)


def split_blobs(content):
    """Return the snapshots in a body, and check that no byte is left."""
    (count,) = struct.unpack_from("<I", content)
    found, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("<I", content, at)
        found.append(content[at + 4 : at + 4 + length])
        assert len(found[-1]) == length
        at += 4 + length
    assert at == len(content)
    return found


def snapshots(caller, type, *wanted):
    """Return the snapshots in an answer by the name of their token or market."""
    status, headers, content = caller.raw({"type": type, TYPES[type]: list(wanted)})
    assert status == 200, content
    if headers["x-payload-format"] == "msgpack":
        found = [unpack(content)]
    else:
        found = [unpack(blob) for blob in split_blobs(content)]
    by_name = {item[1]: item for item in found}
    assert len(by_name) == len(found), "one came twice"
    return by_name
