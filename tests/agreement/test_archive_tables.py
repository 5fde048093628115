"""Each history of the operations table can be archived, and served from an archive."""

import pytest

from toolkit.archive.schemas import RECORDS, operation_table
from toolkit.archive.serve import HISTORY_READERS
from toolkit.contract.operations import OPERATIONS, Operation

HISTORIES = [operation for operation in OPERATIONS.values() if operation.is_history]


@pytest.mark.parametrize("operation", HISTORIES, ids=lambda operation: operation.type)
def test_archived_history_is_served(operation: Operation) -> None:
    table = operation_table(operation)  # raises an error that names RECORDS
    assert table in HISTORY_READERS, (
        f"{operation.type}: an archive that is served would lack the table {table}. Add a reader "
        "to HISTORY_READERS in toolkit/archive/serve.py"
    )


def test_every_history_table_has_reader() -> None:
    assert set(HISTORY_READERS) == set(RECORDS)
