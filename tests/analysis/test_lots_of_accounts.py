"""Lots of two accounts with swaps, gaps, flips, collateral and late fills."""

from typing import Any

import pandas as pd
import polars as pl
import pytest

from toolkit.errors import UnnamedAccount
from toolkit.pnl import lots

from .examples import EXACT, HOUR, ME, MONDAY, OTHER, as_numbers, times
from .test_round_trips import NO, listed_rows, mixed_fills

THEIRS = ("ETH", "@9", "#30", "PURR/USDC")
SWAPS: list[tuple[Any, ...]] = [
    # 6 tokens that cost 3 become 4 that cost 2 and 2 that cost 1.
    ("#40", "B", 6.0, 0.5, 0.0, 0.0, 0.0, "USDC", "Buy", 1),
    ("#40", "A", 6.0, 0.5, 6.0, 0.0, 0.0, "USDC", "Negate Outcome", 4),
    ("#50", "B", 4.0, 0.25, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 4),
    ("#60", "B", 2.0, 0.25, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 4),
    ("#50", "A", 4.0, 0.75, 4.0, 1.0, 0.0, "USDC", "Sell", 5),
    # 2 tokens of unknown cost and 3 that cost 0.75 become 5 of unknown cost.
    ("#70", "B", 3.0, 0.25, 2.0, 0.0, 0.0, "USDC", "Buy", 2),
    ("#70", "A", 5.0, 0.5, 5.0, 0.0, 0.0, "USDC", "Negate Outcome", 3),
    ("#80", "B", 5.0, 0.5, 0.0, 0.0, 0.0, "USDC", "Negate Outcome", 3),
]
MARKS = {"flx:TSLA": 195.5, "#60": 0.8, "PURR/USDC": 4.5, "BTC": 7.0, "#80": 0.5}
#       coin       side    from to size entry exit realised unrealised
MINE: list[tuple[Any, ...]] = [
    ("#20", "long", 2, 5, 8, NO, 0.5, NO, NO),  # no leg shows what became these tokens
    ("#40", "long", 1, 4, 6, 0.5, NO, NO, NO),
    ("#50", "long", 4, 5, 4, 0.5, 0.75, 1, NO),
    ("#60", "long", 4, NO, 2, 0.5, NO, NO, 0.6),
    ("#70", "long", NO, 3, 2, NO, NO, NO, NO),
    ("#70", "long", 2, 3, 3, 0.25, NO, NO, NO),
    ("#80", "long", 3, NO, 5, NO, NO, NO, NO),
    ("@107", "long", 1, 2, 4, 20 / 9.5, NO, NO, NO),
    ("@107", "long", 1, 2, 5.5, 20 / 9.5, 3, 16.5 - 5.5 * 20 / 9.5, NO),
    ("@107", "long", NO, 3, 3, NO, 4, NO, NO),
    ("BTC", "long", NO, 1, 1, NO, 100, NO, NO),
    ("BTC", "long", NO, 4, 2, NO, 90, NO, NO),
    ("BTC", "long", NO, 6, 5, NO, 80, NO, NO),
    ("flx:TSLA", "short", 1, 3, 2, 200, 190, 20, NO),
    ("flx:TSLA", "long", 3, NO, 3, 190, NO, NO, 16.5),
]
OLDEST = [("ETH", "long", 2, 4, 1, 30, 31, 1, NO), ("ETH", "long", 3, 4, 3, 34, 31, -9, NO)]
ETH = {"fifo": OLDEST, "lifo": OLDEST[::-1], "average": [("ETH", "long", 2, 4, 4, 33, 31, -8, NO)]}
OTHERS: list[tuple[Any, ...]] = [
    ("PURR/USDC", "long", NO, 2, 2, NO, 3, NO, NO),
    ("PURR/USDC", "long", NO, 3, 3, NO, NO, NO, NO),
    ("PURR/USDC", "long", 3, NO, 1, 4, NO, NO, 0.5),
]
BEFORE = [("#30", "long", 2, 6, 4, 0.25, NO, NO, NO), ("@9", "long", 1, 4, 2, 5, 7, 4, NO)]


def two_accounts():
    """Perps without `dir` need no warning, because only outcome tokens are converted."""
    first = mixed_fills()
    more = pd.DataFrame(SWAPS, columns=first.columns)
    more["time"] = times(MONDAY + hour * HOUR for hour in more["time"])
    frame = pd.concat([first, more], ignore_index=True)
    frame["user"] = [OTHER if coin in THEIRS else ME.upper() for coin in frame["coin"]]
    frame["dir"] = frame["dir"].where(frame["coin"] != "ETH")
    return frame.drop(columns="closed_pnl")


@pytest.mark.parametrize("kind", ["float", "exact"])
@pytest.mark.parametrize("method", ["fifo", "lifo", "average"])
def test_lots_of_each_account_by_hand(kind, method):
    result = lots(as_numbers(two_accounts(), kind), method, marks=MARKS)
    rows = listed_rows(result)
    mine = MINE.copy()
    if method == "lifo":
        mine[4:6] = mine[5], mine[4]
    wanted = [(ME, *row) for row in mine]
    wanted += [(OTHER.lower(), *row) for row in (*BEFORE, *ETH[method], *OTHERS)]
    assert rows == [tuple(round(v, 9) if isinstance(v, float) else v for v in w) for w in wanted]
    assert {str(result[name].dtype) for name in ("size", "entry_px", "exit_px", "unrealised")} == {
        str(EXACT if kind == "exact" else "float64")
    }
    facts = result.attrs["toolkit"]
    assert (facts["helper"], facts["method"], *facts["inputs"]) == ("pnl.lots", method, "fills")


def test_unseen_tokens_have_no_cost():
    """A leg that takes more tokens than the balance makes the cost of the others unknown."""
    fills = two_accounts().query("coin in ('#40', '#50', '#60')")
    fills["start_position"] = fills["start_position"].where(fills["dir"] != "Negate Outcome", 2.0)
    fills.loc[fills["side"] == "B", "start_position"] = 0.0
    result = lots(fills, marks=MARKS)
    assert listed_rows(result[["coin", "size", "entry_px", "realised"]]) == [
        ("#40", 4, 0.5, NO), ("#40", 2, 0.5, NO), ("#50", 4, NO, NO), ("#60", 2, NO, NO)
    ]  # fmt: skip


def test_perps_without_dir_do_not_warn():
    """Only outcome tokens are converted, so this is no reason for a warning."""
    fills = two_accounts().query("coin == 'ETH'")
    assert lots(fills.assign(dir=pd.array([None] * 3, dtype="str")))["realised"].sum() == -8


def test_only_unnamed_broken_fills_warn():
    """Fills are missing, so positions break: this warns only if nothing names the account."""
    fills = two_accounts().query("coin == 'BTC'").drop(columns="user")
    with pytest.warns(UnnamedAccount, match="1 fill does not start"):
        lots(fills)
    fills.attrs["toolkit"] = {"parameters": {"user": ME}}
    assert lots(fills)["size"].tolist() == [1, 2, 5]


def test_lazy_lots_equal_eager_lots():
    frame = pl.from_pandas(two_accounts())
    lazy = lots(frame.lazy(), "lifo", marks=MARKS).collect()
    assert lazy.equals(lots(frame, "lifo", marks=MARKS))
