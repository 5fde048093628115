"""Attribution of two accounts with collateral, outcome tokens, funding, ledger and positions."""

from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

from toolkit.errors import MissingColumns
from toolkit.pnl import attribution

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times
from .test_round_trips import listed_rows, mixed_fills, payments

THIRD = "0x" + "d" * 40
PRICES = {"USDH": 0.75, "hype": 30}
THEIRS = ("ETH", "@9", "#30", "PURR/USDC")


def two_fills():
    frame = mixed_fills().query("coin != 'ETH' or side == 'B' or start_position == 4")
    frame["user"] = [OTHER if coin in THEIRS else ME.upper() for coin in frame["coin"]]
    frame["builder_fee"] = frame["fee"].where(frame["coin"] == "BTC", 0.0) / 4
    frame["deployer_fee"] = frame["fee"].where(frame["coin"] == "flx:TSLA", 0.0) / 2
    frame["priority_gas"] = [0.5 if coin == "BTC" else float("nan") for coin in frame["coin"]]
    rebate = (frame["coin"] == "BTC") & (frame["px"] == 80.0)
    frame.loc[rebate, "fee"] = -0.75
    return frame


def two_payments():
    """One has no amount, and one is of a third account, which has no fills."""
    frame = payments().query("coin != 'SOL'")
    frame["user"] = [OTHER.lower() if coin in THEIRS else ME for coin in frame["coin"]]
    more = frame.iloc[[0, 0]].assign(usdc=[float("nan"), 1000.0], user=[ME, THIRD])
    late = frame.iloc[[1, 1]].assign(time=times([MONDAY + 99 * HOUR] * 2), usdc=[2.0, 0.25])
    return pd.concat([frame, more, late], ignore_index=True)


def two_ledgers():
    rows = [(ME, "deposit", 100.0), (OTHER, "deposit", 30.0), (OTHER, "withdraw", 7.0)]
    rows += [(ME.upper(), "odd", 1.0), (ME, "internalTransfer", 3.0), (THIRD, "deposit", 4.0)]
    frame = pd.DataFrame(rows, columns=["account", "type", "usdc"])
    frame["user"] = pd.array([None] * 4 + [ME, None], dtype="str")
    return frame.assign(time=times(MONDAY + n * HOUR for n in range(len(rows))))


def states(*rows):
    return pd.DataFrame(rows, columns=["user", "coin", "unrealized_pnl"])


BEFORE = states((ME, "BTC", -5.0), (OTHER, "ETH", 2.0))
AFTER = states((ME.upper(), "BTC", 7.0), (ME, "flx:TSLA", 1.5), (OTHER, "ETH", -3.0))
NAMES = ["fills", "volume", "closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate"]
NAMES += ["funding", "net", "ledger", "equity_change", "unrealised", "priority_gas"]
NAMES += ["fees_in_cost", "funding_outside", "missing_amounts", "unknown_flows", "conversions"]
NAMES += ["at_par"]
MINE = [10, 2382.5, 11.125, -1.55625, -0.40625, -0.525, 0.9375, 52.75, 62.325, 97, 152.2, 13.5]
MINE += [-2, -1, 2.25, 1, 1, 1, 0]
THEIR = [8, 291, -3.25, -24.25, 0, 0, 0, 384.125, 356.625, 23, 375.875, -5, 0, 0, 0, 0, 0, 1, 1]
ELSE = [0, 0, 0, 0, 0, 0, 0, 1000, 1000, 4, 1004, 0, 0, 0, 0, 0, 0, 0, 0]
COINS = {
    "BTC": [4, 980, -11, -0.65625, -0.40625, 0, 0.9375, 0.25, -10.875, 12, -2, 0, 2.25, 1, 0, 0],
    "ETH": [3, 256, -8.75, -22.5, 0, 0, 0, 384.125, 352.875, -5, 0, 0, 0, 0, 0, 0],
    "flx:TSLA": [2, 1350, 14.625, -0.525, 0, -0.525, 0, 52.5, 66.075, 1.5, 0, 0, 0, 0, 0, 0],
    "#30": [1, 1, 1.5, 0, 0, 0, 0, 0, 1.5, 0, 0, 0, 0, 0, 1, 0],
    "@107": [3, 48.5, 6, -0.375, 0, 0, 0, 0, 5.625, 0, 0, -1, 0, 0, 0, 0],
    "@9": [2, 24, 3.5, -1, 0, 0, 0, 0, 2.5, 0, 0, 0, 0, 0, 0, 1],
}


def given(kind):
    frames = [two_fills(), two_payments(), two_ledgers(), BEFORE, AFTER]
    made = [as_numbers(frame, kind) for frame in frames]
    return made[:3], tuple(made[3:])


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_attribution_of_each_account(kind):
    """The third account has no fills: it does not count, unless the fills were fetched for it."""
    frames, ends = given(kind)
    rows = attribution(*frames, by="user", positions=ends, prices=PRICES)
    assert rows["user"].tolist() == [ME, OTHER.lower()]
    for row, wanted in zip(listed_rows(rows[NAMES]), (MINE, THEIR), strict=True):
        assert row == pytest.approx(wanted, abs=1e-9)
    fetched = frames[0].copy()
    fetched.attrs["toolkit"] = {"parameters": {"users": [ME, OTHER, THIRD]}, "rows": len(fetched)}
    every = attribution(fetched, *frames[1:], by="user", positions=ends, prices=PRICES)
    assert every["user"].tolist() == [ME, OTHER.lower(), THIRD]
    for row, wanted in zip(listed_rows(every[NAMES]), (MINE, THEIR, ELSE), strict=True):
        assert row == pytest.approx(wanted, abs=1e-9)
    total = attribution(*frames, positions=ends, prices=PRICES)
    both = [mine + their for mine, their in zip(MINE, THEIR, strict=True)]
    assert listed_rows(total[NAMES])[0] == pytest.approx(both, abs=1e-9)
    assert total["covers"].item() == (
        "fills, funding (7 of 11 position hours), ledger, unrealised, "
        "without 2 funding rows outside the time of the fills"
    )
    mine = attribution(*frames, positions=ends, prices=PRICES, by="user", account=OTHER)
    assert mine["ledger"].tolist()[1] == 100 + 30 - 7


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_attribution_of_each_coin(kind):
    """Collateral has its price in fills and in funding; swaps have no volume."""
    frames, ends = given(kind)
    result = attribution(*frames, by="coin", positions=ends, prices=PRICES).set_index("coin")
    assert result["ledger"].isna().all()
    names = [n for n in NAMES if n not in ("ledger", "equity_change", "unknown_flows")]
    rows = dict(zip(result.index, listed_rows(result[names]), strict=True))
    for coin, wanted in COINS.items():
        assert rows[coin] == pytest.approx(wanted, abs=1e-9), coin


def test_fee_parts_are_exact():
    """No part of a fee becomes a float on its way: 0.7 - 0.1 - 0.2 are 0.4."""
    fees = {"fee": 0.7, "builder_fee": 0.1, "deployer_fee": 0.2, "priority_gas": 0.3}
    row = attribution(as_numbers(two_fills().tail(1).assign(**fees), "exact")).iloc[0]
    names = ["trading_fee", "builder_fee", "deployer_fee", "priority_gas", "net"]
    wanted = [Decimal(text) for text in ("-0.4", "-0.1", "-0.2", "-0.3", "-9.7")]
    assert row[names].tolist() == wanted


def test_sums_of_sources_are_exact():
    """Also those of fills and funding together: 0.1 + 0.2 - 0.7 are -0.4."""
    fills = as_numbers(two_fills().tail(1).assign(fee=0.7, closed_pnl=0.1), "exact")
    paid = fills[["coin", "user", "time"]].assign(usdc=0.2)
    rows = {"account": ME, "type": "deposit", "usdc": [0.1, 0.2], "time": [MONDAY, MONDAY + 1]}
    moved = pd.DataFrame(rows).assign(time=times(rows["time"]))
    row = attribution(fills, *(as_numbers(frame, "exact") for frame in (paid, moved))).iloc[0]
    assert (row["funding"], row["net"]) == (Decimal("0.2"), Decimal("-0.4"))
    assert (row["ledger"], row["equity_change"]) == (Decimal("0.3"), Decimal("-0.1"))


def test_missing_group_is_last():
    """Perps without `dir` need no warning, because only outcome tokens are converted."""
    fills = two_fills().query("coin in ('BTC', 'ETH')")
    fills["fee_token"] = [None if coin == "BTC" else "USDC" for coin in fills["coin"]]
    fills["dir"] = pd.array([None] * len(fills), dtype="str")
    result = attribution(fills, by="fee_token")
    assert result["closed_pnl"].tolist() == [-8.75, -11]
    assert result["fee_token"].isna().tolist() == [False, True]


def test_nan_payment_counts_as_missing():
    """In Polars a NaN is no null, and it is not known either."""
    paid = pl.from_pandas(two_payments()).with_columns(pl.col("usdc").fill_null(float("nan")))
    frames = [pl.from_pandas(as_numbers(frame, "exact")) for frame in (two_fills(), two_payments())]
    for given in ([pl.from_pandas(two_fills()), paid], frames):
        row = attribution(*given, prices=PRICES).row(0, named=True)
        assert (row["funding"], row["missing_amounts"]) == (52.75 + 384.125, 1)


def test_errors_name_the_source():
    """Without accounts, amounts or numbers, or with those of two times."""
    fills, more = two_fills(), {"positions": (None, AFTER)}
    with pytest.raises(MissingColumns, match=r"^positions: .* lacks the column unrealized_pnl"):
        attribution(fills, positions=(None, AFTER[["user", "coin"]]))
    with pytest.raises(MissingColumns, match=r"^positions: the frame lacks the column user"):
        attribution(fills, by="user", positions=(None, AFTER[["coin", "unrealized_pnl"]]))
    with pytest.raises(MissingColumns, match=r"^positions: .*unrealized_pnl is String"):
        attribution(fills, positions=(None, AFTER.astype({"unrealized_pnl": "str"})))
    with pytest.raises(MissingColumns, match=r"^positions: its numbers are float"):
        attribution(as_numbers(fills, "exact"), **more)
    with pytest.raises(ValueError, match=r"^positions: .* has several rows"):
        attribution(fills, positions=(None, pd.concat([AFTER, BEFORE])))
    with pytest.raises(MissingColumns, match=r"^funding: the frame lacks the column user"):
        attribution(fills.assign(user=ME), two_payments().drop(columns="user"), by="user")
    with pytest.raises(MissingColumns, match=r"^ledger: the frame lacks the column type"):
        attribution(fills, None, two_ledgers().drop(columns="type"))
    with pytest.raises(MissingColumns, match=r"^ledger: .*usdc is String"):
        attribution(fills, None, two_ledgers().astype({"usdc": "str"}))
    nameless = fills.drop(columns="user")
    for name, sources in (
        ("funding", {"funding": two_payments()}),
        ("ledger", {"ledger": two_ledgers()}),
        ("positions", more),
    ):
        with pytest.raises(ValueError, match=f"^{name}: the frame has rows of . accounts"):
            attribution(nameless, **sources)
