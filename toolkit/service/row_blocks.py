"""Blocks of texts: the compressed texts of neighbouring rows of a table.

Rows of one table are similar: a block takes a tenth of its size, and reading it is faster than
encoding its rows again. A page for a client that reads zstd has the blocks as they are stored; for
gzip, the blocks of the latest pages are in memory.
"""

import functools
import itertools
import operator
import sqlite3
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import zstandard
from isal import isal_zlib

from toolkit.contract.answers import encode_lines

__all__ = ["SEPARATOR", "PageEncoding", "TextWriter", "block_bounds", "read_page", "read_texts"]

_KEPT_RUNS: Final = 128
"""Runs of neighbouring blocks that stay in memory; that of a page takes 220 KB in both forms."""

# RFC 1951 and RFC 1952: a piece ends at a full byte and refers to nothing before it, and the
# checksum of a body is computed from those of its pieces.
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


PageEncoding = Literal["identity", "gzip", "zstd"]

_BLOCK_ROWS: Final = 64
SEPARATOR: Final = b",\n"
"""Between the texts of a block. A JSON text has no line break, so it can be split there."""

_PUNCTUATION: Final = (b"[", SEPARATOR, b"]")
_OPEN_FRAME, _SEPARATOR_FRAME, _CLOSE_FRAME = map(zstandard.ZstdCompressor().compress, _PUNCTUATION)
_OPEN_PIECE, _SEPARATOR_PIECE, _CLOSE_PIECE = (compress_texts([text]) for text in _PUNCTUATION)


def read_texts(read_block: Callable[[int], bytes], rows: Sequence[int]) -> list[bytes]:
    """Return the texts of rows.

    Parameters
    ----------
    read_block : callable
        Returns the data of a block by its number.
    rows : sequence of int
        Row numbers in any order. Each block is read once.
    """
    decompress = zstandard.ZstdDecompressor().decompress
    blocks: dict[int, list[bytes]] = {}
    result: list[bytes] = []
    for row in rows:
        number, place = divmod(row, _BLOCK_ROWS)
        texts = blocks.get(number)
        if texts is None:
            texts = blocks[number] = decompress(read_block(number)).split(SEPARATOR)
        result.append(texts[place])
    return result


def block_bounds(rows: range) -> tuple[int, int]:
    """Return the numbers of the first and the last block of neighbouring rows."""
    return rows.start // _BLOCK_ROWS, (rows.stop - 1) // _BLOCK_ROWS


def read_page(
    blocks: Iterable[tuple[int, bytes]],
    rows: range,
    edited: Collection[int],
    edit: Callable[[int, list[bytes]], list[bytes]],
    encoding: PageEncoding,
) -> bytes:
    """Return a JSON array of the texts of neighbouring rows, in a content encoding.

    A block whose rows are all on the page, and unchanged, is not compressed again.

    Parameters
    ----------
    blocks : iterable of (int, bytes)
        Numbers and data of the blocks that have the rows, in order.
    rows : range
        The row numbers; at least one.
    edited : collection of int
        The rows whose texts are changed.
    edit : callable
        Returns the changed texts of a block's rows from the number of the first row and its texts.
    encoding : str
        The content encoding of the result.
    """
    parts = _page_parts(blocks, rows, edited, edit)
    if encoding == "gzip":
        pieces = [_OPEN_PIECE]
        for is_stored, run in itertools.groupby(parts, key=operator.itemgetter(0)):
            contents = tuple(content for _, content in run)
            make = recompress_blocks if is_stored else compress_texts
            pieces += [make(contents, SEPARATOR), _SEPARATOR_PIECE]
        pieces[-1] = _CLOSE_PIECE
        return join_pieces(pieces)
    if encoding == "zstd":
        compress = zstandard.ZstdCompressor(level=1).compress
        frames = (content if is_stored else compress(content) for is_stored, content in parts)
        return _OPEN_FRAME + _SEPARATOR_FRAME.join(frames) + _CLOSE_FRAME
    decompress = zstandard.ZstdDecompressor().decompress
    texts = (decompress(content) if is_stored else content for is_stored, content in parts)
    return b"[" + SEPARATOR.join(texts) + b"]"


def _page_parts(
    blocks: Iterable[tuple[int, bytes]],
    rows: range,
    edited: Collection[int],
    edit: Callable[[int, list[bytes]], list[bytes]],
) -> Iterator[tuple[bool, bytes]]:
    """Yield each block of a page: whether it is as stored, and its data; or else its text."""
    decompress = zstandard.ZstdDecompressor().decompress
    changed = {row // _BLOCK_ROWS for row in edited}
    for number, data in blocks:
        begin = number * _BLOCK_ROWS
        first, last = max(rows.start, begin), min(rows.stop, begin + _BLOCK_ROWS)
        if last - first == _BLOCK_ROWS and number not in changed:
            yield True, data
            continue
        texts = decompress(data).split(SEPARATOR)[first - begin : last - begin]
        if number in changed:
            texts = edit(first, texts)
        yield False, SEPARATOR.join(texts)


class TextWriter:
    """Writes the texts of one table's rows, which get numbers in ascending order.

    Every writer begins with a new block, so there are gaps between the numbers of two writers.
    """

    def __init__(self, connection: sqlite3.Connection, kind: str) -> None:
        self._insert = f"INSERT INTO {kind}_text VALUES (?, ?)"
        self._connection = connection
        self._compress = zstandard.ZstdCompressor(level=1).compress
        last = f"SELECT coalesce(max(block), -1) FROM {kind}_text"
        self._block: int = connection.execute(last).fetchone()[0] + 1

    @property
    def next_row(self) -> int:
        """The number that the next row gets."""
        return self._block * _BLOCK_ROWS

    def write_records(self, records: Iterable[object]) -> int:
        """Write the texts of records, and return the number of the first row."""
        first = self.next_row
        remaining = iter(records)
        while block := list(itertools.islice(remaining, _BLOCK_ROWS)):
            data = self._compress(encode_lines(block)[:-1].replace(b"\n", SEPARATOR))
            self._connection.execute(self._insert, (self._block, data))
            self._block += 1
        return first
