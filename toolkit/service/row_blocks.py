"""Blocks of texts: the compressed texts of neighbouring rows of a table.

Rows of one table are similar: a block takes a tenth of its size, and reading it is faster than
encoding its rows again. A page for a client that reads zstd has the blocks as they are stored.
"""

import itertools
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

import zstandard

from toolkit.contract.answers import encode_lines

BLOCK_ROWS: Final = 64
SEPARATOR: Final = b",\n"
"""Between the texts of a block. A JSON text has no line break, so it can be split there."""

_OPEN_FRAME, _SEPARATOR_FRAME, _CLOSE_FRAME = map(zstandard.compress, (b"[", SEPARATOR, b"]"))


def read_page(
    blocks: Iterable[tuple[int, bytes]], rows: range, omitted: Mapping[int, bytes], is_zstd: bool
) -> bytes:
    """Return a JSON array of the texts of neighbouring rows.

    A block whose rows are all on the page, and unchanged, is not compressed again.

    Parameters
    ----------
    blocks : iterable of (int, bytes)
        Numbers and data of the blocks that have the rows, in order.
    rows : range
        The row numbers; at least one.
    omitted : mapping of int to bytes
        Row number -> the part of its text that the page omits.
    is_zstd : bool
        Whether the result is compressed.
    """
    compress = zstandard.ZstdCompressor(level=1).compress
    decompress = zstandard.ZstdDecompressor().decompress
    changed = {row // BLOCK_ROWS for row in omitted}
    parts = []
    for number, data in blocks:
        begin = number * BLOCK_ROWS
        numbers = range(max(rows.start, begin), min(rows.stop, begin + BLOCK_ROWS))
        if len(numbers) == BLOCK_ROWS and number not in changed:
            parts.append(data if is_zstd else decompress(data))
            continue
        texts = decompress(data).split(SEPARATOR)[numbers.start - begin : numbers.stop - begin]
        if number in changed:
            texts = [
                text.replace(omitted[row], b"", 1) if row in omitted else text
                for row, text in zip(numbers, texts, strict=True)
            ]
        part = SEPARATOR.join(texts)
        parts.append(compress(part) if is_zstd else part)
    if is_zstd:
        return _OPEN_FRAME + _SEPARATOR_FRAME.join(parts) + _CLOSE_FRAME
    return b"[" + SEPARATOR.join(parts) + b"]"


def write_texts(connection: sqlite3.Connection, kind: str, records: Iterable[object]) -> int:
    """Write the texts of a table's further rows, and return the number of the first row.

    They begin with a new block, so there are gaps between the numbers of two calls.
    """
    compress = zstandard.ZstdCompressor(level=1).compress
    last = connection.execute(f"SELECT coalesce(max(block), -1) FROM {kind}_text").fetchone()
    first, remaining = last[0] + 1, iter(records)
    for number in itertools.count(first):
        block = list(itertools.islice(remaining, BLOCK_ROWS))
        if not block:
            break
        data = compress(encode_lines(block)[:-1].replace(b"\n", SEPARATOR))
        connection.execute(f"INSERT INTO {kind}_text VALUES (?, ?)", (number, data))
    return int(first * BLOCK_ROWS)
