"""From the body of an answer to the MessagePack of its snapshots, in bounded memory."""

import contextlib
import struct
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import zstandard

from toolkit.errors import AnswerInvalid

__all__ = ["MAGIC", "inflate", "payloads"]

MAGIC: Final = bytes.fromhex("28b52ffd")
_WORD: Final = struct.Struct("<I")
_WINDOW: Final = 1 << 27
_FIRST: Final = 1 << 20


def payloads(headers: Mapping[str, str], content: bytes, limit: int) -> Iterator[memoryview]:
    """Give the MessagePack of each snapshot of an answer, one after the other.

    Parameters
    ----------
    headers : mapping
        HTTP headers, names in any case.
    content : bytes
        The body. Some HTTP libraries have already undone ``Content-Encoding: zstd``, others
        have not: its first bytes tell.
    limit : int
        Most bytes of all snapshots together, decompressed.

    Yields
    ------
    memoryview
        MessagePack of one snapshot, not checked.

    Raises
    ------
    AnswerInvalid
        If the body is damaged, or more than `limit` comes out of it.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    for blob in _blobs(content) if _is_multi(headers, content) else [memoryview(content)]:
        payload = inflate(decompressor, blob, limit)
        limit -= len(payload)
        yield payload


def inflate(decompressor: zstandard.ZstdDecompressor, blob: memoryview, limit: int) -> memoryview:
    """Decompress zstd data; what is not zstd is taken as already decompressed.

    Frames may lack their content size, and there may be several. A declared size is only
    believed as far as the blob can plausibly hold it, and never beyond `limit`.
    """
    if blob[:4] != MAGIC:
        if len(blob) > limit:
            raise _too_long()
        return blob
    try:
        declared = zstandard.frame_content_size(blob)
        if 0 < declared <= _plausible(blob, limit):
            with contextlib.suppress(zstandard.ZstdError):
                return memoryview(decompressor.decompress(blob, allow_extra_data=False))
        return _read(decompressor, blob, declared, limit)
    except zstandard.ZstdError as error:
        raise AnswerInvalid(f"the zstd data is damaged: {error}") from None


def _plausible(blob: memoryview, limit: int) -> int:
    """Give the most memory to take before anything comes: 2 GiB can be declared in 20 bytes."""
    return min(limit, 100 * len(blob) + _FIRST)


def _is_multi(headers: Mapping[str, str], content: bytes) -> bool:
    form = next((text for name, text in headers.items() if name.lower() == "x-payload-format"), "")
    if form.lower() in ("multi-zstd", "msgpack"):
        return form.lower() == "multi-zstd"
    # Without the header: a count and a length stand before the first blob. No MessagePack of a
    # snapshot has these four bytes there, since they are no UTF-8.
    return content[:4] != MAGIC and content[8:12] == MAGIC


def _blobs(content: bytes) -> Iterator[memoryview]:
    view, at = memoryview(content), 4
    if len(content) < 4:
        raise AnswerInvalid(f"{len(content)} bytes are too few for the number of snapshots")
    (count,) = _WORD.unpack_from(content)
    for index in range(count):
        if at + 4 > len(content):
            raise AnswerInvalid(f"{count} snapshots are announced, but the body ends after {index}")
        (length,) = _WORD.unpack_from(content, at)
        at += 4
        if at + length > len(content):
            raise AnswerInvalid(
                f"snapshot {index + 1} of {count} should have {length} bytes, but "
                f"{len(content) - at} are left"
            )
        yield view[at : at + length]
        at += length
    if at != len(content):
        raise AnswerInvalid(f"{len(content) - at} bytes follow the last of {count} snapshots")


def _read(
    decompressor: zstandard.ZstdDecompressor, blob: memoryview, declared: int, limit: int
) -> memoryview:
    """Read frames of which the size is not known, or that are not as they should be."""
    size = min(_plausible(blob, limit), 4 * len(blob) + _FIRST)
    buffer, filled = np.empty(size + 1, np.uint8), 0
    reader = decompressor.stream_reader(blob, read_across_frames=True)
    while got := reader.readinto(buffer.data[filled:]):
        filled += got
        if filled > limit:
            raise _too_long()
        if filled == len(buffer):
            longer = np.empty(min(2 * filled, limit + 1), np.uint8)
            longer[:filled] = buffer
            buffer = longer
    if filled < declared:
        raise AnswerInvalid(f"the zstd data ends after {filled} of {declared} bytes")
    return buffer.data[:filled]


def _too_long() -> AnswerInvalid:
    return AnswerInvalid(
        "the snapshots are longer than the limit when decompressed; if that is right, ask for "
        "fewer at a time"
    )
