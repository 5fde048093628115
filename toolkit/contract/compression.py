"""Decompression of bodies in bounded memory.

The first bytes of a body show its compression. The headers do not: some HTTP libraries have already
decompressed a body whose headers still name an encoding. Neither JSON nor a MessagePack array or
map begins like zstd or gzip data.
"""

import contextlib
import zlib
from typing import Final

import zstandard

from toolkit.errors import AnswerDamaged, AnswerInvalid

_ZSTD: Final = bytes.fromhex("28b52ffd")
_GZIP: Final = bytes.fromhex("1f8b")
_WINDOW: Final = 1 << 27
_PART: Final = 1 << 17
_SKIPPABLE: Final = bytes.fromhex("2a4d18")  # the last three bytes of the magic number
_MOST_MEMBERS: Final = 10_000
_CHUNK: Final = 1 << 14  # gzip data is read in chunks, since the end of each member copies the rest


def decompress(
    blob: bytes | memoryview, limit: int, decompressor: zstandard.ZstdDecompressor | None = None
) -> memoryview:
    """Return the decompressed zstd or gzip data; other data is returned as it is.

    There may be several zstd frames, with or without their content size, and skippable frames
    before, between and after them. Whether data ends too early shows only in what they contain.

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
    whole, at = bytearray(), 0
    try:
        for _ in range(_MOST_MEMBERS):
            stream = zlib.decompressobj(wbits=31)
            while not stream.eof:
                chunk = blob[at : at + _CHUNK]
                if not chunk:
                    raise AnswerDamaged("the gzip data ends too early. Request it again")
                whole += stream.decompress(chunk, limit + 1 - len(whole))
                if len(whole) > limit:
                    raise _limit_error()
                at += len(chunk) - len(stream.unused_data)
            if at == len(blob):
                return memoryview(whole)
    except zlib.error as error:
        raise AnswerDamaged(f"the gzip data is damaged: {error}. Request it again") from None
    raise AnswerInvalid(f"the gzip data has more than {_MOST_MEMBERS:,} members")


def _decompress_zstd(
    decompressor: zstandard.ZstdDecompressor, blob: memoryview, limit: int
) -> memoryview:
    whole = bytearray()
    try:
        if 0 < zstandard.frame_content_size(blob) <= min(limit, 100 * len(blob)):  # a usual page
            with contextlib.suppress(zstandard.ZstdError):  # several frames
                return memoryview(decompressor.decompress(blob, allow_extra_data=False))
        with decompressor.stream_reader(blob, read_across_frames=True) as stream:
            while part := stream.read(_PART):
                whole += part
                if len(whole) > limit:
                    raise _limit_error()
    except zstandard.ZstdError as error:
        raise AnswerDamaged(f"the zstd data is damaged: {error}. Request it again") from None
    return memoryview(whole)


def _limit_error() -> AnswerInvalid:
    return AnswerInvalid(
        "the decompressed answer is longer than the limit; if it can be that long, request less "
        "data at a time"
    )
