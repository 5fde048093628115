"""What the operations table says of archives holds: every history can be served."""

from toolkit.archive.schemas import RECORDS, operation_table
from toolkit.archive.serve import HISTORY_TABLES
from toolkit.contract.operations import OPERATIONS


def test_archived_history_is_served():
    # operation_table raises an error that names RECORDS
    tables = {operation_table(row) for row in OPERATIONS.values() if row.is_history}
    assert tables <= HISTORY_TABLES.keys(), "add a function in toolkit/archive/serve.py"
    assert HISTORY_TABLES.keys() == RECORDS.keys()
