"""What the operations table says of archives holds: histories and answers can be served."""

from toolkit.archive.schemas import RECORDS, operation_table
from toolkit.archive.serve import ANSWER_READERS, HISTORY_READERS
from toolkit.contract.operations import OPERATIONS


def test_archived_history_is_served():
    # operation_table raises an error that names RECORDS
    tables = {operation_table(row) for row in OPERATIONS.values() if row.is_history}
    assert tables <= HISTORY_READERS.keys(), "add a reader in toolkit/archive/serve.py"
    assert HISTORY_READERS.keys() == RECORDS.keys()


def test_archived_answer_is_served():
    answers = {row.type for row in OPERATIONS.values() if row.from_archive and not row.is_history}
    assert ANSWER_READERS.keys() == answers, "add a reader, or remove from_archive=True"
