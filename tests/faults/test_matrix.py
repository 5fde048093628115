"""Every fault x operation x recovery: nothing is wrong in silence but what docs/faults.md names."""

import itertools
from collections import Counter

import pytest
import stamina

import toolkit as tk
from tests.faults.matrix import (
    CURSORS,
    DOCS,
    HISTORIES,
    RETRIED,
    SNAPSHOT,
    UNCONFIRMED_FAULTS,
    Matrix,
    cells_table,
    documented_cells,
    run_cells,
    small_matrix,
)
from toolkit.archive import open as open_archive

REFRESHED = ("builderOrdersByTime", "slippageHistory", "builderApprovedFundingByTime")
ARCHIVED_FAULTS = (  # one fails the request; the others can change rows that are archived
    "reset",
    "null",
    "row dropped",
    "row doubled",
    "page cut",
    "page doubled",
    "page dropped",
)


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
    assert silent == {cell for cell in documented_cells() if cell[0] == fault}
    outcomes = cells_table({fault: cells}).splitlines()[-1].removeprefix(f"| {fault}")
    rows = [line for line in DOCS.read_text().splitlines() if line.endswith(outcomes)]
    faults = {name for row in rows for name in row.removesuffix(outcomes)[2:].split(", ")}
    assert fault in faults, "run: python -m tests.faults.matrix --write"


@pytest.fixture(scope="module", name="default_matrix")
def _default_matrix():
    with stamina.set_testing(True, attempts=6):
        yield small_matrix(confirm_end=None)


@pytest.mark.parametrize("fault", UNCONFIRMED_FAULTS)
def test_unconfirmed_pulls_miss_only_documented_faults(default_matrix, fault):
    """By default the end of one page is not confirmed: docs/faults.md names what this leaves."""
    cells = {(fault, name): default_matrix.worst_outcome(name, fault).name for name in HISTORIES}
    silent = {cell for cell, outcome in cells.items() if outcome in ("silent", "endless")}
    listed = {cell for cell in documented_cells("unconfirmed") if cell[0] == fault}
    assert listed == silent - documented_cells(), cells


@pytest.mark.parametrize("fault", tk.testing.FAULTS)
def test_pulls_after_fault_are_correct(matrix, fault):
    """Also a retry, and the rows of `Incomplete` with those after its cursor."""
    found = {name: matrix.pull_again(name, fault) for name in matrix.calls}
    found |= {f"{name} resumed": matrix.resume(name, fault) for name in CURSORS}
    if fault in RETRIED:
        names = matrix.calls.keys() - {*SNAPSHOT}
        found |= {f"{name} retried": matrix.retry(name, fault) for name in names}
    assert found == dict.fromkeys(found, "")


@pytest.mark.parametrize("fault", ARCHIVED_FAULTS)
def test_archive_refreshed_after_fault_is_correct(matrix, fault, tmp_path):
    """After a fault, the next refresh makes the archive right, or `complete` is not yes."""
    for name in REFRESHED:
        archive = open_archive(tmp_path / name)
        wrong = matrix.refresh_again(name, fault, archive)
        assert not wrong or (fault, name) in documented_cells(), f"{name}: {wrong}"


def test_pulls_with_many_faults_are_rarely_silent():
    """Faults hit 30 % of the requests: three seeds that hit, of each operation and fault."""
    faults = ("row dropped", "page cut", "page empty", "row doubled")
    outcomes = Counter()
    with stamina.set_testing(True, attempts=6):
        matrix = Matrix(tk.local(seed=7, size="tiny", default=False), confirm_end=True)
        for operation, fault in itertools.product((*CURSORS, "slippageHistory"), faults):
            damaged = (matrix.damage(fault, share=0.3, seed=seed) for seed in range(100))
            names = (matrix.run(operation, transport).name for transport in damaged)
            outcomes.update(itertools.islice(filter(None, names), 3))
    assert outcomes.total() == 60
    assert outcomes["silent"] <= 3
    assert outcomes["endless"] == 0
