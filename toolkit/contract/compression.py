"""Decompression of bodies in bounded memory.

The first bytes of a body show its compression. The headers do not: some HTTP libraries have already
decompressed a body whose headers still name an encoding. Neither JSON nor a MessagePack array or
map begins like zstd or gzip data.
"""

import contextlib
import io
from typing import Any, Final

import zstandard
from isal import igzip, igzip_lib

from toolkit.errors import AnswerDamaged, AnswerInvalid

_ZSTD: Final = bytes.fromhex("28b52ffd")
_GZIP: Final = bytes.fromhex("1f8b")
WINDOW: Final = 1 << 27
"""The largest window of a zstd frame that is read."""
_PART: Final = 1 << 17
_open_gzip: Final[Any] = igzip.open  # it has no types
_DAMAGED: Final[Any] = (zstandard.ZstdError, igzip_lib.IsalError, OSError, EOFError)
_SKIPPABLE: Final = bytes.fromhex("2a4d18")  # the last three bytes of the magic number


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

    >>> bytes(decompress(igzip.compress(b"[]"), 10))
    b'[]'
    """
    view, whole = memoryview(blob), bytearray()
    kind = "zstd" if is_zstd(view) else "gzip" if view[:2] == _GZIP else ""
    try:
        if kind == "zstd":
            decompressor = decompressor or zstandard.ZstdDecompressor(max_window_size=WINDOW)
            if 0 < zstandard.frame_content_size(view) <= min(limit, 100 * len(view)):  # as usual
                with contextlib.suppress(zstandard.ZstdError):  # several frames
                    return memoryview(decompressor.decompress(view, allow_extra_data=False))
            with decompressor.stream_reader(view, read_across_frames=True) as stream:
                while len(whole) <= limit and (part := stream.read(_PART)):
                    whole += part
        elif kind:
            with _open_gzip(io.BytesIO(view)) as file:  # twice as fast as zlib
                while len(whole) <= limit and (part := file.read(_PART)):
                    whole += part
    except _DAMAGED as error:
        raise AnswerDamaged(f"the {kind} data is damaged: {error}. Request it again") from None
    result = memoryview(whole) if kind else view
    if len(result) > limit:
        raise AnswerInvalid(
            "the decompressed answer is longer than the limit; if it can be that long, request "
            "less data at a time"
        )
    return result


def is_zstd(blob: bytes | memoryview) -> bool:
    """Return whether data begins with a zstd frame, skippable or not.

    Examples
    --------
    >>> is_zstd(bytes.fromhex("28b52ffd")), is_zstd(bytes.fromhex("502a4d18")), is_zstd(b"[]")
    (True, True, False)
    """
    magic = bytes(blob[:4])
    return magic == _ZSTD or (magic[1:] == _SKIPPABLE and magic[0] >> 4 == 5)
