"""Decompression of bodies in bounded memory.

The first bytes of a body show its compression. The headers do not: some HTTP libraries have already
decompressed a body whose headers still name an encoding. Neither JSON nor a MessagePack array or
map begins like zstd or gzip data.
"""

import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import zstandard

from toolkit.errors import AnswerDamaged, AnswerInvalid

_ZSTD: Final = bytes.fromhex("28b52ffd")
_GZIP: Final = bytes.fromhex("1f8b")
_WINDOW: Final = 1 << 27
_FIRST: Final = 1 << 20
_SKIPPABLE: Final = bytes.fromhex("2a4d18")  # the last three bytes of the magic number
_MOST_FRAMES: Final = 10_000  # also of gzip members; each needs a buffer
_CHUNK: Final = 1 << 14  # gzip data is read in chunks, since the end of each member copies the rest
_LONGEST_HEAD: Final = 18  # bytes of the header of a frame


def decompress(
    blob: bytes | memoryview, limit: int, decompressor: zstandard.ZstdDecompressor | None = None
) -> memoryview:
    """Return the decompressed zstd or gzip data; other data is returned as it is.

    There may be several zstd frames, with or without their content size, and skippable frames
    before, between and after them. A declared size counts only if it is plausible for the length of
    the blob, and never beyond `limit`.

    - ``blob``: the data
    - ``limit``: the most bytes that the result may have
    - ``decompressor``: a decompressor to use again; a new one costs more time than a small blob

    Raise AnswerInvalid if the data is damaged, or the result is longer than `limit`.

    >>> bytes(decompress(zlib.compress(b"[]", wbits=31), 10))
    b'[]'
    """
    view = memoryview(blob)
    if is_zstd(view):
        return _decompress_zstd(decompressor or bounded_decompressor(), view, limit)
    if view[:2] == _GZIP:
        return _decompress_gzip(view, limit)
    if len(view) > limit:
        raise _limit_error()
    return view


def is_zstd(blob: bytes | memoryview) -> bool:
    """Return whether data begins with a zstd frame, skippable or not.

    Examples
    --------
    >>> is_zstd(bytes.fromhex("28b52ffd")), is_zstd(bytes.fromhex("502a4d18")), is_zstd(b"[]")
    (True, True, False)
    """
    magic = bytes(blob[:4])
    return magic == _ZSTD or (magic[1:] == _SKIPPABLE and magic[0] >> 4 == 5)


def bounded_decompressor() -> zstandard.ZstdDecompressor:
    """Return a decompressor with a bounded window."""
    return zstandard.ZstdDecompressor(max_window_size=_WINDOW)


def _decompress_gzip(blob: memoryview, limit: int) -> memoryview:
    parts: list[bytes] = []
    at, left = 0, limit + 1
    try:
        for _ in range(_MOST_FRAMES):
            stream = zlib.decompressobj(wbits=31)
            while not stream.eof:
                chunk = blob[at : at + _CHUNK]
                if not chunk:
                    raise AnswerDamaged("the gzip data ends too early. Request it again")
                parts.append(stream.decompress(chunk, left))
                left -= len(parts[-1])
                if left <= 0:
                    raise _limit_error()
                at += len(chunk) - len(stream.unused_data)
            if at == len(blob):
                return memoryview(b"".join(parts))
    except zlib.error as error:
        raise AnswerDamaged(f"the gzip data is damaged: {error}. Request it again") from None
    raise AnswerInvalid(f"the gzip data has more than {_MOST_FRAMES:,} members")


def _decompress_zstd(
    decompressor: zstandard.ZstdDecompressor, blob: memoryview, limit: int
) -> memoryview:
    try:
        parts, left = [], limit
        for number, frame in enumerate(_zstd_frames(blob)):
            if number == _MOST_FRAMES:
                raise AnswerInvalid(f"the zstd data has more than {_MOST_FRAMES:,} frames")
            parts.append(_decompress_frame(decompressor, frame, left))
            left -= len(parts[-1])
    except zstandard.ZstdError as error:
        raise AnswerDamaged(f"the zstd data is damaged: {error}. Request it again") from None
    return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))


def _zstd_frames(blob: memoryview) -> Iterator[memoryview]:
    """Yield the frames that have content, without skippable frames (RFC 8878, section 3.1).

    zstandard accepts a frame with a truncated checksum. Therefore the end of each frame is computed
    here.
    """
    at = 0
    while at < len(blob):
        if not is_zstd(blob[at:]):
            raise AnswerDamaged(
                f"the zstd data is damaged: no frame begins at byte {at}. Request it again"
            )
        is_skippable = blob[at : at + 4] != _ZSTD
        end = _skippable_end(blob, at) if is_skippable else _frame_end(blob, at)
        if end > len(blob):
            raise AnswerDamaged(
                f"the zstd data ends too early: it has {len(blob)} bytes of at least {end}. "
                "Request it again"
            )
        if not is_skippable:
            yield blob[at:end]
        at = end


def _skippable_end(blob: memoryview, start: int) -> int:
    return start + 8 + int.from_bytes(blob[start + 4 : start + 8], "little")


def _frame_end(blob: memoryview, start: int) -> int:
    """Return where a frame ends, beyond the end of the data if the frame is cut."""
    head = blob[start : start + _LONGEST_HEAD]
    at = start + zstandard.frame_header_size(head)
    while at + 3 <= len(blob):
        block = int.from_bytes(blob[at : at + 3], "little")
        # A block of type 1 stores one byte, whatever its size field says. Every other block stores
        # as many bytes as its size field says.
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if block & 1:
            return at + 4 * zstandard.get_frame_parameters(head).has_checksum
    return max(at + 3, len(blob) + 1)


def _plausible_size(blob: memoryview, limit: int) -> int:
    """Return a cap for the first allocation, since a header of 20 bytes may declare 2 GiB."""
    return min(limit, 100 * len(blob) + _FIRST)


def _decompress_frame(
    decompressor: zstandard.ZstdDecompressor, frame: memoryview, limit: int
) -> memoryview:
    if 0 < zstandard.frame_content_size(frame) <= _plausible_size(frame, limit):
        return memoryview(decompressor.decompress(frame))
    size = min(_plausible_size(frame, limit), 4 * len(frame) + _FIRST)
    buffer, filled = np.empty(size + 1, np.uint8), 0
    stream = decompressor.stream_reader(frame)
    while count := stream.readinto(buffer.data[filled:]):
        filled += count
        if filled > limit:
            raise _limit_error()
        if filled == len(buffer):
            longer = np.empty(min(2 * filled, limit + 1), np.uint8)
            longer[:filled] = buffer
            buffer = longer
    return buffer.data[:filled]


def _limit_error() -> AnswerInvalid:
    return AnswerInvalid(
        "the decompressed answer is longer than the limit; if it can be that long, request less "
        "data at a time"
    )
