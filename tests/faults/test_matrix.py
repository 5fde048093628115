"""Every fault x operation x recovery: nothing is wrong in silence but what docs/faults.md names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import stamina

import toolkit as tk
from tests.faults.matrix import Matrix, worst_outcome

DOCS: Final = Path(__file__).parents[2] / "docs" / "faults.md"

WHOLE: Final = ("metaAndAssetCtxs", "currentDepth", "batchClearinghouseStates")
LATEST: Final = ("userFills", "historicalOrders")
HISTORIES: Final = (
    "userFillsByTime",
    "builderApprovedFillsByTime",
    "builderApprovedFundingByTime",
    "builderOrdersByTime",
    "slippageHistory",
    "userNonFundingLedgerUpdates",
)
EVERY: Final = (*HISTORIES, *LATEST, *WHOLE, "accountValueSnapshots")

# Fault -> the operations in which the rows cannot show it always, or at all. Each has a line in
# docs/faults.md, with the reason.
UNDETECTED: Final[dict[str, tuple[str, ...]]] = {
    "flipped byte": EVERY,
    "null": EVERY,
    "row dropped": EVERY,
    "rows swapped": WHOLE,
    "page empty": EVERY,
    "page cut": EVERY,
    "page dropped": HISTORIES,
}


@pytest.fixture(scope="module", name="matrix")
def _matrix() -> Iterator[Matrix]:
    with stamina.set_testing(True, attempts=6):
        yield Matrix(tk.local(seed=7, size="tiny", default=False), confirm_end=True)


@pytest.mark.parametrize("fault", tk.testing.FAULTS)
def test_no_cell_is_wrong_in_silence(matrix: Matrix, fault: str) -> None:
    """No cell is endless or raises a foreign error, and after the fault each pull is right."""
    cells = {name: worst_outcome(matrix, name, fault) for name in matrix.pulls}
    assert {name for name, (_, troubles) in cells.items() if troubles} == set()
    outcomes = {name: outcome for name, (outcome, _) in cells.items()}
    assert "endless" not in outcomes.values()
    silent = {name for name, outcome in outcomes.items() if outcome == "silent"}
    assert silent <= {*UNDETECTED.get(fault, ())}
    assert any(outcomes.values()), "the fault was never injected"


def test_docs_name_every_undetected_fault() -> None:
    text = DOCS.read_text()
    named = text.partition("## What cannot be detected")[2]
    assert {fault for fault in tk.testing.FAULTS if f"| {fault} |" in named} == {*UNDETECTED}
    assert all(f"| {fault} |" in text for fault in tk.testing.FAULTS)
