"""The matrix of faults: what each operation does with each fault, and whether it recovers.

A cell is one operation and one fault. It is run with several seeds, over pulls of several pages of
the tiny simulated exchange, and has the worst outcome of them.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

import toolkit as tk
from toolkit.contract.deviations import forget_deviations

SEEDS: Final = 3
SHARE: Final = 0.5
MOST_REQUESTS: Final = 200
OUTCOMES: Final = ("right", "error", "warned", "silent", "endless")
"""From the best to the worst: the frame is right; a `ToolkitError`; a warning; nothing is said."""


@dataclass(frozen=True)
class Pull:
    """A call of a fetch function on the example accounts of a session.

    Attributes
    ----------
    fetch
        Makes the call: it takes the session.
    """

    fetch: Callable[..., Any]

    def __call__(self, session: Any, **named: Any) -> tuple[pd.DataFrame, ...]:
        frames = self.fetch(session, **named)
        return (frames,) if isinstance(frames, pd.DataFrame) else tuple(frames)


def _pulls(world: Mapping[str, Any]) -> dict[str, Pull]:
    user, builder = world["users"][0], world["builders"][0]
    addresses = list(world["users"][:5])
    return {
        "userFillsByTime": Pull(
            lambda session, **named: tk.user_fills_by_time(
                user, 0, page_size=200, session=session, **named
            )
        ),
        "builderApprovedFillsByTime": Pull(
            lambda session, **named: tk.builder_approved_fills_by_time(
                builder, 0, page_size=200, session=session, **named
            )
        ),
        "builderApprovedFundingByTime": Pull(
            lambda session, **named: tk.builder_approved_funding_by_time(
                builder, 0, page_size=200, session=session, **named
            )
        ),
        "builderOrdersByTime": Pull(
            lambda session, **named: tk.builder_orders_by_time(builder, 0, session=session, **named)
        ),
        "slippageHistory": Pull(
            lambda session, **named: tk.slippage_history(
                "BTC", 1_000, 0, page_size=60, session=session, **named
            )
        ),
        "userNonFundingLedgerUpdates": Pull(
            lambda session, **named: tk.user_non_funding_ledger_updates(
                user, session=session, **named
            )
        ),
        "userFills": Pull(lambda session: tk.user_fills(user, session=session)),
        "historicalOrders": Pull(lambda session: tk.historical_orders(user, session=session)),
        "metaAndAssetCtxs": Pull(lambda session: tk.meta_and_asset_ctxs(session=session)),
        "currentDepth": Pull(lambda session: tk.current_depth(session=session)),
        "batchClearinghouseStates": Pull(
            lambda session: tk.batch_clearinghouse_states(addresses, session=session)
        ),
        "accountValueSnapshots": Pull(
            lambda session: tk.account_value_snapshots(["USDC"], session=session)
        ),
    }


class Matrix:
    """The operations of the matrix on one session, with the right frames.

    Parameters
    ----------
    session
        The service without faults.
    confirm_end
        As `toolkit.connect` takes it.
    """

    def __init__(self, session: Any, confirm_end: bool | None = None) -> None:
        self.session = session
        self.confirm_end = confirm_end
        self.pulls = _pulls(session.world)
        self.truth = {name: pull(session) for name, pull in self.pulls.items()}

    def run(
        self, operation: str, fault: str, seed: int, share: float = SHARE
    ) -> tuple[str, str, str]:
        """Run a pull with faults, and again without.

        Returns
        -------
        tuple of str
            The outcome; ``recovered`` or what was wrong after the fault; and what was said. The
            outcome is empty if the fault had no place in the answers.
        """
        transport = tk.testing.faulty(
            self.session, fault, share=share, seed=seed, sleep=lambda seconds: None
        )
        points = MOST_REQUESTS * 100
        with tk.connect(
            "http://localhost",
            transport=transport,
            most_points=points,
            confirm_end=self.confirm_end,
            default=False,
        ) as session:
            outcome, words = self._outcome(operation, session)
            if not transport.injected:
                return "", "recovered", ""
            transport.is_active = False
            after, _ = self._outcome(operation, session)
        return outcome, "recovered" if after == "right" else f"{after} after the fault", words

    def _outcome(self, operation: str, session: Any) -> tuple[str, str]:
        forget_deviations()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                frames = self.pulls[operation](session)
            except tk.ToolkitError as error:
                is_endless = "points" in str(error)
                return "endless" if is_endless else "error", f"{type(error).__name__}: {error}"
        if self._is_right(operation, frames):
            return "right", ""
        said = "; ".join(str(warning.message) for warning in caught)
        states = {frame.attrs["toolkit"]["complete"] for frame in frames}
        if said or not states <= {"yes", "latest"}:
            return "warned", said or ", ".join(states)
        return "silent", ""

    def _is_right(self, operation: str, frames: tuple[pd.DataFrame, ...]) -> bool:
        truth = self.truth[operation]
        pairs = zip(frames, truth, strict=True)
        return len(frames) == len(truth) and all(frame.equals(other) for frame, other in pairs)


def worst_outcome(matrix: Matrix, operation: str, fault: str) -> tuple[str, set[str]]:
    """Return the worst outcome of a cell, and what was wrong after the fault."""
    worst, recoveries = "", set()
    for seed in range(SEEDS):
        outcome, recovery, _ = matrix.run(operation, fault, seed, SHARE)
        recoveries.add(recovery)
        if outcome and (not worst or OUTCOMES.index(outcome) > OUTCOMES.index(worst)):
            worst = outcome
    return worst, recoveries - {"recovered"}


def markdown_table(cells: Mapping[tuple[str, str], str]) -> str:
    """Return the table of docs/faults.md: a line for each fault, a column for each operation."""
    operations = list(dict.fromkeys(operation for _, operation in cells))
    faults = list(dict.fromkeys(fault for fault, _ in cells))
    lines = [
        "| fault | " + " | ".join(f"`{name}`" for name in operations) + " |",
        "| --- |" + " --- |" * len(operations),
        *(
            f"| {fault} | " + " | ".join(cells[fault, name] or "-" for name in operations) + " |"
            for fault in faults
        ),
    ]
    return "\n".join(lines) + "\n"


def measure_silence(matrix: Matrix) -> tuple[int, int]:
    """Return how many of 60 damaged pulls were wrong in silence, and how many were damaged.

    Faults hit 30 % of the requests: five operations, four faults, three seeds that hit.
    """
    silent = pulls = 0
    for operation in list(matrix.pulls)[:5]:
        for fault in ("row dropped", "page cut", "page empty", "row doubled"):
            hits = 0
            for seed in range(100):
                outcome, _, _ = matrix.run(operation, fault, seed, 0.3)
                hits += bool(outcome)
                pulls += bool(outcome)
                silent += outcome in ("silent", "endless")
                if hits == SEEDS:
                    break
    return silent, pulls


if __name__ == "__main__":
    import stamina

    with stamina.set_testing(True, attempts=6):
        service = tk.local(seed=7, size="tiny", default=False)
        made = Matrix(service, confirm_end=True)
        found = {
            (fault, name): worst_outcome(made, name, fault)[0]
            for fault in tk.testing.FAULTS
            for name in made.pulls
        }
        print(markdown_table(found))
        for confirm_end in (None, True):
            print(f"confirm_end={confirm_end}:", measure_silence(Matrix(service, confirm_end)))
