"""Damaged pulls: how many are wrong in silence, and why the client cannot notice these.

Faults hit 30 % of the requests: five operations, four faults, three seeds that hit, so 60 pulls.
``python -m tests.faults.damaged_pulls`` prints each silent pull with its reason.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import stamina

import toolkit as tk
from tests.faults.matrix import Matrix, Outcome

FAULTS: Final = ("row dropped", "page cut", "page empty", "row doubled")
OPERATIONS: Final = (
    "userFillsByTime",
    "builderApprovedFillsByTime",
    "builderApprovedFundingByTime",
    "builderOrdersByTime",
    "slippageHistory",
)
SHARE: Final = 0.3
HITS: Final = 3
_SERIES: Final = ("user", "coin")

REASONS: Final = {
    "both": "the request that confirms the end was damaged, too: both answers say the same",
    "unconfirmed": "the history seems to have one page, whose end is confirmed only on demand",
    "independent": "no event of an order depends on another one",
    "outermost": "it is the first or the last row of its account and coin: no row depends on it",
    "usual": "tokens may have been transferred, or the approval revoked: `unproved` has the place",
    "changed": "the position changed at this hour, so that it may have been closed in between",
}
"""Name of a reason -> why the client cannot notice that rows are missing."""


@dataclass(frozen=True)
class DamagedPull:
    """A damaged pull, its outcome, and if it is silent the names of its `REASONS`.

    Attributes
    ----------
    operation, fault, seed
        What was damaged.
    outcome
        What it came to.
    reasons
        Why nothing is said, for each missing row; ``unexplained`` if no reason holds.
    """

    operation: str
    fault: str
    seed: int
    outcome: Outcome
    reasons: frozenset[str] = frozenset()


def damage_pulls(matrix):
    """Yield damaged pulls: of each operation and fault the first seeds that hit."""
    for operation in OPERATIONS:
        for fault in FAULTS:
            hits = 0
            for seed in range(100):
                found = matrix.run(operation, matrix.damage(fault, SHARE, seed))
                if not found.name:
                    continue
                is_silent = found.name in ("silent", "endless")
                reasons = explain_silence(matrix, operation, found) if is_silent else frozenset()
                yield DamagedPull(operation, fault, seed, found, reasons)
                hits += 1
                if hits == HITS:
                    break


def explain_silence(matrix, operation, found):
    """Return why the client cannot notice which rows are missing from a silent frame."""
    frame, truth = found.frames[0], matrix.truth[operation][0]
    facts = frame.attrs["toolkit"]
    if len(frame) == 0 or frame.iloc[-1].tolist()[:5] != truth.iloc[-1].tolist()[:5]:
        # The end is missing. The last two requests are the last page and its confirmation.
        requests = facts["requests"]
        if {requests - 1, requests} <= {*found.requests}:
            return frozenset({"both"})
        return frozenset({"unexplained" if matrix.confirm_end else "unconfirmed"})
    if operation == "builderOrdersByTime":
        return frozenset({"independent"})
    series = [name for name in _SERIES if name in truth.columns]
    keys = [*series, *({"tid", "time"} & {*truth.columns})]
    positions = truth.groupby(series).cumcount()
    last = truth.groupby(series)["time"].transform("size") - 1
    known = set(frame[keys].itertuples(index=False, name=None))
    places = set(facts.get("unproved", ())) - set(truth.attrs["toolkit"].get("unproved", ()))
    reasons = set()
    for row, key in enumerate(truth[keys].itertuples(index=False, name=None)):
        if key in known:
            continue
        coin = truth["coin"].iloc[row]
        if positions.iloc[row] in (0, last.iloc[row]):
            reasons.add("outermost")
        elif any(place.startswith(f"{coin} of ") for place in places):
            reasons.add("usual")
        elif "szi" in truth.columns and _is_position_changed(truth, series, row):
            reasons.add("changed")
        else:
            reasons.add("unexplained")
    return frozenset(reasons or {"unexplained"})


def _is_position_changed(truth, series, row):
    same = (truth[series] == truth[series].iloc[row]).all(axis=1)
    sizes = truth.loc[same, "szi"].tolist()
    at = int(same.iloc[:row].sum())
    return bool(sizes[at - 1] != sizes[at + 1])


def count_outcomes(pulls):
    """Return the number of pulls of each outcome and of each reason as a line."""
    outcomes = Counter(pull.outcome.name for pull in pulls)
    reasons = Counter(reason for pull in pulls for reason in pull.reasons)
    return f"{len(pulls)} damaged pulls: {dict(outcomes)}; reasons: {dict(reasons)}"


if __name__ == "__main__":
    with stamina.set_testing(True, attempts=6):
        service = tk.local(seed=7, size="tiny", default=False)
        for confirm_end in (None, True):
            made = list(damage_pulls(Matrix(service, confirm_end)))
            print(f"confirm_end={confirm_end}: {count_outcomes(made)}")
            for pull in made:
                if pull.reasons:
                    why = "; ".join(REASONS.get(reason, reason) for reason in sorted(pull.reasons))
                    print(f"  {pull.operation}, {pull.fault}, seed {pull.seed}: {why}")
