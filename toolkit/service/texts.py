"""The finished JSON texts of rows, in compressed blocks of neighbours.

Rows of one table are much alike: a block of them takes a tenth of its size, and is read
faster than it would be made. A row is found by its number.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

import zstandard

from toolkit.contract.answers import encode_lines

__all__ = ["KINDS", "Texts", "read"]

KINDS: Final = ("fill", "funding", "status", "ledger", "slippage")
"""The tables whose rows have texts."""

_ROWS: Final = 64


class Texts:
    """Writes the texts of one table's rows, which are numbered in the order they come.

    Whoever comes next goes on with a new block: numbers rise, with a gap.
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
        return self._block * _ROWS

    def add(self, records: Iterable[object]) -> int:
        """Take records, and give the number of the first one's row; the others' follow it."""
        first = self.next_row
        several = iter(records)
        while block := list(islice(several, _ROWS)):
            # JSON texts have no line break in them; the last one is not asked for.
            data = self._compress(memoryview(encode_lines(block))[:-1])
            self._connection.execute(self._insert, (self._block, data))
            self._block += 1
        return first


def read(block: Callable[[int], bytes], rows: Sequence[int]) -> list[bytes]:
    """Give the texts of rows.

    Parameters
    ----------
    block : callable
        Gives the data of a block by its number.
    rows : sequence of int
        Numbers of rows, in any order; neighbours are read at once.

    Returns
    -------
    list of bytes
    """
    decompress = zstandard.ZstdDecompressor().decompress
    blocks: dict[int, list[bytes]] = {}
    found: list[bytes] = []
    while (done := len(found)) < len(rows):
        number, place = divmod(rows[done], _ROWS)
        texts = blocks.get(number)
        if texts is None:
            texts = blocks[number] = decompress(block(number)).split(b"\n")
        wanted = list(rows[done : done + _ROWS - place])
        # Most often a page goes on to the end of the block.
        many = len(wanted) if wanted == list(range(wanted[0], wanted[0] + len(wanted))) else 1
        found += texts[place : place + many]
    return found
