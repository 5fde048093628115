"""Snapshots to bytes, exactly as the specification says."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import zstandard

__all__ = ["assembled", "packed"]

_WORD: Final = struct.Struct("<I")

# ASSUMED: numbers of snapshots travel as MessagePack numbers, not as decimal text; readers here
# take both.
_encoder = msgspec.msgpack.Encoder(decimal_format="number")


def packed(
    snapshot: tuple[Any, ...],
    entries: Iterable[tuple[Any, ...]],
    lengths: tuple[int, ...],
    level: int,
) -> bytes:
    """Write one snapshot, after a look at the length of its entries."""
    for entry in entries:
        if len(entry) not in lengths:
            allowed = " or ".join(map(str, lengths))
            raise ValueError(f"an entry has {allowed} values, not {len(entry)}: {entry!r}")
    return zstandard.ZstdCompressor(level=level).compress(_encoder.encode(tuple(snapshot)))


def assembled(blobs: Sequence[bytes]) -> tuple[dict[str, str], bytes]:
    """Put compressed snapshots into one answer."""
    if not blobs:
        raise ValueError("there is no answer without a snapshot: the service says 404")
    # ASSUMED: binary snapshots travel as application/octet-stream; the specification names no
    # content type, and readers here ignore it.
    headers = {"Content-Type": "application/octet-stream"}
    if len(blobs) == 1:
        headers |= {"x-payload-format": "msgpack", "Content-Encoding": "zstd"}
        return headers, blobs[0]
    headers |= {"x-payload-format": "multi-zstd", "x-compression": "inner-zstd"}
    parts = [_WORD.pack(len(blobs))]
    for blob in blobs:
        parts += [_WORD.pack(len(blob)), blob]
    return headers, b"".join(parts)
