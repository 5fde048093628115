"""Two processes that append the same answer at once archive it once."""

from toolkit.archive import open as open_archive
from toolkit.archive.refresh import Asked, FetchedAnswer, append_answers
from toolkit.archive.schemas import ANSWERS, SCHEMAS, RowOrigin, make_series
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.operations import OPERATIONS

META = make_series(OPERATIONS["meta"], (), {})
ORIGIN = RowOrigin("recording meta.json", False, 1_000)


class ConcurrentWriter(ArchiveTables):
    """Tables into which another process writes the same answer just before the first append."""

    theirs = None

    def append_rows(self, handle, rows, **more):
        if self.theirs is None and rows.schema.names == SCHEMAS[ANSWERS].names:
            self.theirs = append_meta(ArchiveTables(self.location), b"{}")
        super().append_rows(handle, rows, **more)


def append_meta(tables, body):
    (done,) = append_answers(tables, [FetchedAnswer(Asked(META, ORIGIN), body, {})])
    return done.rows, done.total


def test_concurrent_append_keeps_equal_answer_once(tmp_path):
    tables = ConcurrentWriter(str(tmp_path))
    assert (append_meta(tables, b"{}"), tables.theirs) == ((0, 1), (1, 1))
    archive = open_archive(tmp_path)
    assert archive.status()["rows"].tolist() == [1]
    assert append_meta(tables, b'{"another": 1}') == (1, 2)
    assert archive.status()["rows"].tolist() == [2]
    assert archive.verify() == []
