"""Blocks of texts: the compressed texts of neighbouring rows of a table.

Rows of one table are similar: a block takes a tenth of its size, and reading it is faster than
encoding its rows again. A page for a client that reads zstd has the blocks as they are stored; for
gzip, the blocks of the latest pages are in memory.
"""

import itertools
import operator
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, Literal

import zstandard

from toolkit.contract.answers import encode_lines
from toolkit.service.gzip_pieces import compress_texts, join_pieces, recompress_blocks

__all__ = ["SEPARATOR", "PageEncoding", "TextWriter", "block_bounds", "read_page", "read_texts"]

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
        Row numbers in any order. Neighbours are read together.
    """
    decompress = zstandard.ZstdDecompressor().decompress
    blocks: dict[int, list[bytes]] = {}
    result: list[bytes] = []
    while (done := len(result)) < len(rows):
        number, place = divmod(rows[done], _BLOCK_ROWS)
        texts = blocks.get(number)
        if texts is None:
            texts = blocks[number] = decompress(read_block(number)).split(SEPARATOR)
        candidates = list(rows[done : done + _BLOCK_ROWS - place])
        # Usually a page continues to the end of the block, so the block is copied at once.
        is_range = candidates == list(range(candidates[0], candidates[0] + len(candidates)))
        count = len(candidates) if is_range else 1
        result += texts[place : place + count]
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
