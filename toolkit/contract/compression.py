"""Decompression of bodies in bounded memory.

The first bytes of a body show its compression. The headers do not: some HTTP libraries have already
decompressed a body whose headers still name an encoding. Neither JSON nor a MessagePack array or
map begins like zstd or gzip data.
"""

import contextlib
import zlib
from typing import Final

import numpy as np
import zstandard

from toolkit.errors import AnswerDamaged, AnswerInvalid

__all__ = ["ZSTD", "bounded_decompressor", "decompress"]

ZSTD: Final = bytes.fromhex("28b52ffd")
_GZIP: Final = bytes.fromhex("1f8b")
_WINDOW: Final = 1 << 27
_FIRST: Final = 1 << 20


def decompress(
    blob: bytes | memoryview,
    limit: int,
    decompressor: zstandard.ZstdDecompressor | None = None,
) -> memoryview:
    """Return the decompressed zstd or gzip data; other data is returned as it is.

    There may be several zstd frames, with or without their content size. A declared size counts
    only if it is plausible for the length of the blob, and never beyond `limit`.

    Parameters
    ----------
    blob : bytes
        The data.
    limit : int
        The most bytes that the result may have.
    decompressor : ZstdDecompressor, optional
        A decompressor to use again; a new one costs more time than a small blob.

    Raises
    ------
    AnswerInvalid
        If the data is damaged, or the result is longer than `limit`.

    Examples
    --------
    >>> bytes(decompress(zlib.compress(b"[]", wbits=31), 10))
    b'[]'
    """
    view = memoryview(blob)
    if view[:4] == ZSTD:
        return _decompress_zstd(decompressor or bounded_decompressor(), view, limit)
    if view[:2] == _GZIP:
        return _decompress_gzip(view, limit)
    if len(view) > limit:
        raise _limit_error()
    return view


def bounded_decompressor() -> zstandard.ZstdDecompressor:
    """Return a decompressor with a bounded window."""
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW)


def _decompress_gzip(blob: memoryview, limit: int) -> memoryview:
    parts, rest, left = [], bytes(blob), limit + 1
    try:
        while rest:
            stream = zlib.decompressobj(wbits=31)
            parts.append(stream.decompress(rest, left))
            left -= len(parts[-1])
            if left <= 0:
                raise _limit_error()
            if not stream.eof:
                raise AnswerDamaged("the gzip data ends too early")
            rest = stream.unused_data
    except zlib.error as error:
        raise AnswerDamaged(f"the gzip data is damaged: {error}") from None
    return memoryview(b"".join(parts))


def _decompress_zstd(
    decompressor: zstandard.ZstdDecompressor, blob: memoryview, limit: int
) -> memoryview:
    try:
        declared = zstandard.frame_content_size(blob)
        if 0 < declared <= _plausible_size(blob, limit):
            with contextlib.suppress(zstandard.ZstdError):
                return memoryview(decompressor.decompress(blob, allow_extra_data=False))
        return _decompress_stream(decompressor, blob, declared, limit)
    except zstandard.ZstdError as error:
        raise AnswerDamaged(f"the zstd data is damaged: {error}") from None


def _plausible_size(blob: memoryview, limit: int) -> int:
    """Return the memory to allocate first; 20 bytes can declare a size of 2 GiB."""
    return min(limit, 100 * len(blob) + _FIRST)


def _decompress_stream(
    decompressor: zstandard.ZstdDecompressor, blob: memoryview, declared: int, limit: int
) -> memoryview:
    """Return the content of frames of unknown size, or of irregular frames."""
    size = min(_plausible_size(blob, limit), 4 * len(blob) + _FIRST)
    buffer, filled = np.empty(size + 1, np.uint8), 0
    stream = decompressor.stream_reader(blob, read_across_frames=True)
    while count := stream.readinto(buffer.data[filled:]):
        filled += count
        if filled > limit:
            raise _limit_error()
        if filled == len(buffer):
            longer = np.empty(min(2 * filled, limit + 1), np.uint8)
            longer[:filled] = buffer
            buffer = longer
    if filled < declared:
        raise AnswerDamaged(f"the zstd data ends after {filled} of {declared} bytes")
    return buffer.data[:filled]


def _limit_error() -> AnswerInvalid:
    return AnswerInvalid(
        "the decompressed answer is longer than the limit; if it can be that long, request less "
        "data at a time"
    )
