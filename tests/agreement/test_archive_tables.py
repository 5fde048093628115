"""What the operations table says of archives holds: histories and answers can be served."""

import pytest

from toolkit.archive.schemas import RECORDS, operation_table
from toolkit.archive.serve import ANSWER_READERS, HISTORY_READERS
from toolkit.contract.operations import OPERATIONS

HISTORIES = [operation for operation in OPERATIONS.values() if operation.is_history]


@pytest.mark.parametrize("operation", HISTORIES, ids=lambda operation: operation.type)
def test_archived_history_is_served(operation):
    table = operation_table(operation)  # raises an error that names RECORDS
    assert table in HISTORY_READERS, (
        f"{operation.type}: an archive that is served would lack the table {table}. Add a reader "
        "to HISTORY_READERS in toolkit/archive/serve.py"
    )


def test_every_history_table_has_reader():
    assert set(HISTORY_READERS) == set(RECORDS)


def test_archived_answer_is_served():
    answers = {
        operation.type
        for operation in OPERATIONS.values()
        if operation.from_archive and not operation.is_history
    }
    assert set(ANSWER_READERS) == answers, (
        "a service that serves an archive answers exactly these operations that are no histories. "
        "Add a reader to ANSWER_READERS in toolkit/archive/serve.py, or remove from_archive=True"
    )
