"""A gzip body joined from pieces, so that blocks are compressed once for several pages.

RFC 1951 and RFC 1952: a piece ends at a full byte and refers to nothing before it, and the checksum
of a body is computed from those of its pieces.
"""

import functools
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

import zstandard
from isal import isal_zlib

__all__ = ["GzipPiece", "compress_texts", "join_pieces", "recompress_blocks"]

_KEPT_RUNS: Final = 128
"""Runs of neighbouring blocks that stay in memory; that of a page takes 220 KB in both forms."""

_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # deflate, no name, no time, any system
_LAST_BLOCK: Final = b"\x03\0"  # an empty deflate block that ends the body
_LEVEL: Final = 1


class GzipPiece(NamedTuple):
    """A part of a gzip body, with checksum and length of its text."""

    deflated: bytes
    checksum: int
    length: int


def compress_texts(texts: Iterable[bytes], separator: bytes = b"") -> GzipPiece:
    """Return texts as a part of a gzip body."""
    text = separator.join(texts)
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS)
    deflated = compressor.compress(text) + compressor.flush(isal_zlib.Z_FULL_FLUSH)
    return GzipPiece(deflated, isal_zlib.crc32(text), len(text))


@functools.lru_cache(maxsize=_KEPT_RUNS)
def recompress_blocks(blocks: tuple[bytes, ...], separator: bytes) -> GzipPiece:
    """Return zstd frames as a part of a gzip body; the latest parts stay in memory."""
    return compress_texts(map(zstandard.ZstdDecompressor().decompress, blocks), separator)


def join_pieces(pieces: Iterable[GzipPiece]) -> bytes:
    """Return a gzip body.

    Examples
    --------
    >>> import gzip
    >>> gzip.decompress(join_pieces([compress_texts([b"[1", b"2"], b","), compress_texts([b"]"])]))
    b'[1,2]'
    """
    parts, checksum, length = [_HEADER], 0, 0
    for piece in pieces:
        parts.append(piece.deflated)
        checksum = isal_zlib.crc32_combine(checksum, piece.checksum, piece.length)
        length += piece.length
    return b"".join([*parts, _LAST_BLOCK, struct.pack("<II", checksum, length & 0xFFFF_FFFF)])
