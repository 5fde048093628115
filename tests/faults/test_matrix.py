"""Every fault x operation x recovery: nothing is wrong in silence but what docs/faults.md names."""

import pytest
import stamina

import toolkit as tk
from tests.faults.matrix import (
    CURSORS,
    DOCS,
    HISTORIES,
    RETRIED,
    SNAPSHOT,
    UNCONFIRMED,
    UNCONFIRMED_FAULTS,
    cells_table,
    run_cells,
    small_matrix,
    undetected_cells,
    undetected_table,
)
from toolkit.archive import open as open_archive

ARCHIVED = ("builderOrdersByTime", "slippageHistory", "builderApprovedFundingByTime")


@pytest.fixture(scope="module", name="matrix")
def _matrix():
    with stamina.set_testing(True, attempts=6):
        yield small_matrix()


@pytest.mark.parametrize("fault", tk.testing.FAULTS)
def test_silent_cells_equal_documented(matrix, fault):
    """Exactly the listed cells are silent; none is endless or raises a foreign error."""
    cells = {name: outcome.name for name, outcome in run_cells(matrix, fault).items()}
    assert any(cells.values()), "the fault was never injected"
    assert "endless" not in cells.values()
    silent = {(fault, name) for name, outcome in cells.items() if outcome == "silent"}
    assert silent == {cell for cell in undetected_cells() if cell[0] == fault}
    row = cells_table({fault: cells}).splitlines()[-1]
    assert row in DOCS.read_text(), "run: python -m tests.faults.matrix --write"


@pytest.fixture(scope="module", name="default_matrix")
def _default_matrix():
    with stamina.set_testing(True, attempts=6):
        yield small_matrix(confirm_end=None)


@pytest.mark.parametrize("fault", UNCONFIRMED_FAULTS)
def test_unconfirmed_pulls_miss_only_documented_faults(default_matrix, fault):
    """By default the end of one page is not confirmed: docs/faults.md names what this leaves."""
    cells = {name: default_matrix.worst_outcome(name, fault).name for name in HISTORIES}
    silent = {name for name, outcome in cells.items() if outcome in ("silent", "endless")}
    listed = {name for row in UNCONFIRMED if row.fault == fault for name in row.operations}
    known = {name for of_fault, name in undetected_cells() if of_fault == fault}
    assert listed == silent - known, cells


@pytest.mark.parametrize("fault", tk.testing.FAULTS)
def test_pull_after_fault_is_correct(matrix, fault):
    assert {name: matrix.pull_again(name, fault) for name in matrix.calls} == dict.fromkeys(
        matrix.calls, ""
    )


@pytest.mark.parametrize("fault", RETRIED)
def test_retry_after_fault_is_correct(matrix, fault):
    names = [name for name in matrix.calls if name not in SNAPSHOT]
    assert {name: matrix.retry(name, fault) for name in names} == dict.fromkeys(names, "")


@pytest.mark.parametrize("fault", tk.testing.FAULTS)
def test_resumed_pull_is_correct(matrix, fault):
    """The rows of `Incomplete` and those after its cursor are all rows."""
    assert {name: matrix.resume(name, fault) for name in CURSORS} == dict.fromkeys(CURSORS, "")


@pytest.mark.parametrize("fault", tk.testing.FAULTS)
def test_archive_refreshed_after_fault_is_correct(matrix, fault, tmp_path):
    """After a fault, the next refresh makes the archive right, or `complete` is not yes."""
    listed = {name for of_fault, name in undetected_cells() if of_fault == fault}
    for name in ARCHIVED:
        archive = open_archive(tmp_path / name)
        wrong = matrix.refresh_again(name, fault, archive)
        assert not wrong or name in listed, f"{name}: {wrong}"


def test_docs_name_every_undetected_fault():
    text = DOCS.read_text()
    assert undetected_table() in text, "run: python -m tests.faults.matrix --write"
    assert undetected_table(UNCONFIRMED) in text, "run: python -m tests.faults.matrix --write"
    assert all(f"| {fault} |" in text for fault in tk.testing.FAULTS)
