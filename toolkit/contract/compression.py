"""Compressed bodies, undone in bounded memory.

What a body is, its first bytes say: some HTTP libraries have already undone an encoding that
the headers still name, others have not. No JSON and no MessagePack array or map begins as
zstd or gzip data does.
"""

import contextlib
import zlib
from typing import Final

import numpy as np
import zstandard

from toolkit.errors import AnswerDamaged, AnswerInvalid

__all__ = ["ZSTD", "inflate", "reader"]

ZSTD: Final = bytes.fromhex("28b52ffd")
_GZIP: Final = bytes.fromhex("1f8b")
_WINDOW: Final = 1 << 27
_FIRST: Final = 1 << 20


def inflate(
    blob: bytes | memoryview,
    limit: int,
    decompressor: zstandard.ZstdDecompressor | None = None,
) -> memoryview:
    """Decompress zstd or gzip data; anything else is taken as already decompressed.

    Zstd frames may lack their content size, and there may be several. A declared size is only
    believed as far as the blob can plausibly hold it, and never beyond `limit`.

    Parameters
    ----------
    blob : bytes
        The data.
    limit : int
        Most bytes that may come out of it.
    decompressor : ZstdDecompressor, optional
        One to use again; making one costs more than a small blob.

    Raises
    ------
    AnswerInvalid
        If the data is damaged, or more than `limit` comes out of it.

    Examples
    --------
    >>> bytes(inflate(zlib.compress(b"[]", wbits=31), 10))
    b'[]'
    """
    view = memoryview(blob)
    if view[:4] == ZSTD:
        return _zstd(decompressor or reader(), view, limit)
    if view[:2] == _GZIP:
        return _gzip(view, limit)
    if len(view) > limit:
        raise _too_long()
    return view


def reader() -> zstandard.ZstdDecompressor:
    """Make a decompressor whose window is bounded."""
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW)


def _gzip(blob: memoryview, limit: int) -> memoryview:
    parts, rest, left = [], bytes(blob), limit + 1
    try:
        while rest:
            stream = zlib.decompressobj(wbits=31)
            parts.append(stream.decompress(rest, left))
            left -= len(parts[-1])
            if left <= 0:
                raise _too_long()
            if not stream.eof:
                raise AnswerDamaged("the gzip data ends too early")
            rest = stream.unused_data
    except zlib.error as error:
        raise AnswerDamaged(f"the gzip data is damaged: {error}") from None
    return memoryview(b"".join(parts))


def _zstd(decompressor: zstandard.ZstdDecompressor, blob: memoryview, limit: int) -> memoryview:
    try:
        declared = zstandard.frame_content_size(blob)
        if 0 < declared <= _plausible(blob, limit):
            with contextlib.suppress(zstandard.ZstdError):
                return memoryview(decompressor.decompress(blob, allow_extra_data=False))
        return _read(decompressor, blob, declared, limit)
    except zstandard.ZstdError as error:
        raise AnswerDamaged(f"the zstd data is damaged: {error}") from None


def _plausible(blob: memoryview, limit: int) -> int:
    """Give the most memory to take before anything comes: 2 GiB can be declared in 20 bytes."""
    return min(limit, 100 * len(blob) + _FIRST)


def _read(
    decompressor: zstandard.ZstdDecompressor, blob: memoryview, declared: int, limit: int
) -> memoryview:
    """Read frames of which the size is not known, or that are not as they should be."""
    size = min(_plausible(blob, limit), 4 * len(blob) + _FIRST)
    buffer, filled = np.empty(size + 1, np.uint8), 0
    stream = decompressor.stream_reader(blob, read_across_frames=True)
    while got := stream.readinto(buffer.data[filled:]):
        filled += got
        if filled > limit:
            raise _too_long()
        if filled == len(buffer):
            longer = np.empty(min(2 * filled, limit + 1), np.uint8)
            longer[:filled] = buffer
            buffer = longer
    if filled < declared:
        raise AnswerDamaged(f"the zstd data ends after {filled} of {declared} bytes")
    return buffer.data[:filled]


def _too_long() -> AnswerInvalid:
    return AnswerInvalid(
        "the answer is longer than the limit when decompressed; if that is right, ask for less "
        "at a time"
    )
