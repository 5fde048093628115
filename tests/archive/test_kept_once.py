"""Of two writers that keep the same answer at once, one does."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from toolkit import archive
from toolkit.archive.refresh import append_answer
from toolkit.archive.schemas import ANSWERS, SCHEMAS, RowOrigin
from toolkit.archive.series import make_series
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.operations import OPERATIONS

META = make_series(OPERATIONS["meta"], (), {})
ORIGIN = RowOrigin("recording meta.json", False, 1_000)


class Meanwhile(ArchiveTables):
    """Lets another process keep the same answer right before the first one is written."""

    theirs: int | None = None

    def append_rows(self, handle: Any, rows: pa.Table, **more: Any) -> None:
        if self.theirs is None and rows.schema.names == SCHEMAS[ANSWERS].names:
            self.theirs = keep(ArchiveTables(self.location), b"{}")
        super().append_rows(handle, rows, **more)


def keep(tables: ArchiveTables, body: bytes) -> int:
    return append_answer(tables, META, body, {}, ORIGIN)


def test_an_answer_that_two_keep_at_once_is_kept_once(tmp_path: Path) -> None:
    tables = Meanwhile(str(tmp_path))
    assert (keep(tables, b"{}"), tables.theirs) == (0, 1)
    kept = archive.open(tmp_path)
    assert kept.status()["rows"].tolist() == [1]
    assert keep(tables, b'{"another": 1}') == 1
    assert kept.status()["rows"].tolist() == [2]
    assert kept.verify() == []
