"""What an attribution covers: rows of three accounts and four coins, by hand."""

from typing import Any

import narwhals as nw
import pandas as pd
import pytest

from toolkit.analysis.common.frame_access import normalise_frame, open_frame
from toolkit.analysis.pnl.attribution_coverage import mark_uncovered, mark_unknown, source_state

from .examples import ME, OTHER, as_numbers
from .test_round_trips import listed_rows

KINDS = pytest.mark.parametrize("kind", ["float", "exact"])
THIRD, FOURTH = "0x" + "c" * 40, "0x" + "d" * 40
ALL = {"fills": "fills", "funding": "funding", "ledger": "ledger", "unrealised": "unrealised"}
GONE = "not funding (no rows)"
#  user   coin  payments perps outside net flow  held paid  funding and its words
SUMS: list[tuple[Any, ...]] = [
    (ME, "BTC", 3, 2, 0, 4.0, 0.5, 8, 8, "funding"),
    (ME, "ETH", 2, 1, 1, -3.0, 0.25, 5, 2, "funding (2 of 5 position hours)"),
    # No payment in 4 hours with a position; none in no hour.
    (ME, "SOL", 0, 1, 0, 2.0, 8.0, 4, 0, GONE),
    (ME, "DOGE", 0, 1, 2, 1.0, 16.0, None, None, "funding"),
    # The account has no payment at all.
    (OTHER, "BTC", 0, 1, 0, 7.0, -1.0, 3, 0, GONE),
    (OTHER, "ETH", 0, 1, 0, 9.0, -2.0, None, None, GONE),
    # It has no fills of perps.
    (THIRD, "BTC", 0, 0, 3, 0.0, 64.0, None, None, "funding"),
    (FOURTH, "BTC", 0, 1, 0, 5.0, 32.0, None, None, GONE),
]
OUTSIDE = {0: "", 1: ", without 1 funding row outside the time of the fills"}
OUTSIDE |= {n: f", without {n} funding rows outside the time of the fills" for n in (2, 3)}
NAMES = ["user", "coin", "_payments", "_perps", "_outside", "_perp_net", "ledger"]


def make_sums(kind):
    frame = pd.DataFrame([row[:7] for row in SUMS], columns=NAMES)
    frame["funding"] = [float(n) for n in range(len(frame))]
    return open_frame(as_numbers(frame.assign(unrealised=6.0, _no_unrealised=0), kind), "sums")


def make_hours(keys):
    frame = pd.DataFrame(
        [(*row[:2], *row[7:9]) for row in SUMS], columns=["user", "coin", "_held", "_paid_hours"]
    )
    frame = frame.dropna().astype({"_held": "int64", "_paid_hours": "int64"})
    sums = frame[["_held", "_paid_hours"]]
    made = (
        frame.groupby(keys)[["_held", "_paid_hours"]].sum().reset_index()
        if keys
        else sums.sum().to_frame().T
    )
    return nw.from_native(normalise_frame(made))


def mark(kind, keys, covers, hours):
    rows = mark_uncovered(make_sums(kind), keys, kind, covers, hours)
    names = ["user", "coin", "funding", "equity_change", "ledger", "unrealised", "covers"]
    made: pd.DataFrame = pd.DataFrame(rows.select(names).rows(), columns=names)
    return made.sort_values(["user", "coin"], key=lambda c: c.map(PLACES), ignore_index=True)


PLACES = {
    name: n
    for n, name in enumerate([ME, OTHER.lower(), THIRD, FOURTH, "BTC", "ETH", "SOL", "DOGE"])
}


@KINDS
def test_coverage_by_account_and_coin(kind):
    keys = ["user", "coin"]
    rows = mark(kind, keys, ALL, make_hours(keys))
    wanted = [
        (
            None if words == GONE else float(number),
            None if words == GONE else net + flow,
            flow,
            6.0,
            f"fills, {words}, ledger, unrealised{OUTSIDE[outside]}",
        )
        for number, (*_, outside, net, flow, _, _, words) in enumerate(SUMS)
    ]
    assert listed_rows(rows.drop(columns=keys)) == wanted


@KINDS
def test_each_day_states_hours_of_account(kind):
    """Each row states the hours of its account. A day without rows lacks them if any is missing."""
    rows = mark(kind, ["user", "day"], ALL, make_hours(["user"]))
    some = "funding (10 of 17 position hours in all)"
    words = [some, some, GONE, GONE, GONE, GONE, "funding", GONE]
    outside = [OUTSIDE[row[4]] for row in SUMS]
    ends = ", ledger, unrealised"
    assert rows["covers"].tolist() == [
        f"fills, {part}{ends}{end}" for part, end in zip(words, outside, strict=True)
    ]
    # Of all accounts together: the third one has no row of payments, either.
    rows = mark(kind, ["day"], ALL, make_hours([]))
    some = "funding (10 of 20 position hours in all)"
    words = [some, some, GONE, GONE, GONE, GONE, GONE, GONE]
    assert rows["covers"].tolist() == [
        f"fills, {part}{ends}{end}" for part, end in zip(words, outside, strict=True)
    ]


@KINDS
def test_coverage_without_hours_needs_any_payment(kind):
    """Rows of an account with perp fills are missing if they have no payment."""
    rows = mark(kind, ["user"], ALL, None)
    words = ["funding", "funding", GONE, GONE, GONE, GONE, "funding", GONE]
    assert rows["covers"].str.split(", ").str[1].tolist() == words
    assert rows["funding"].isna().tolist() == [part == GONE for part in words]


@KINDS
def test_sources_without_columns_are_not_covered(kind):
    covers = {"fills": "fills", "funding": source_state("funding", ["px", "sz"], ("user",))}
    rows = mark(kind, ["user"], covers, None)
    assert set(rows["covers"]) == {"fills, not funding (it has no px, sz)"}
    for name in ("funding", "equity_change", "ledger", "unrealised"):
        assert rows[name].isna().all()
    rows = mark(kind, ["user"], {"fills": "fills", "ledger": "ledger"}, None)
    assert rows["ledger"].tolist() == [row[6] for row in SUMS]
    assert rows[["funding", "equity_change", "unrealised"]].isna().all(axis=None)
    assert source_state("ledger", ["user"], ("user", "day")) == "ledger"


FEES = ["trading_fee", "builder_fee", "deployer_fee", "rebate", "fees_in_cost"]


@KINDS
def test_groups_state_share_of_known_amounts(kind):
    """A sum is missing if no fill has the amount; otherwise the share of the fills is stated."""
    counts = pd.DataFrame({"_rows": [4, 4, 4, 4, 0, 5, 5], "_no_closed_pnl": [0, 1, 4, 3, 0, 0, 1]})
    frame = counts.assign(_no_fee=[0, 2, 3, 4, 0, 1, 0], covers="fills, funding")
    for number, name in enumerate(["closed_pnl", *FEES, "net", "equity_change"]):
        frame[name] = [number + 0.5 * n for n in range(7)]
    rows = mark_unknown(open_frame(as_numbers(frame, kind), "sums"))
    made = {name: rows[name].to_list() for name in rows.columns}
    lost = {"closed_pnl": [2], **{key: [3] for key in FEES}, "net": [2, 3], "equity_change": [2, 3]}
    for number, (name, places) in enumerate(lost.items()):
        wanted = [None if n in places else number + 0.5 * n for n in range(7)]
        assert [None if v is None or v != v else float(v) for v in made[name]] == wanted, name
    assert made["covers"] == [
        "fills, funding",
        "fills (3 of 4 closed PnLs, 2 of 4 fees known), funding",
        "fills (0 of 4 closed PnLs, 1 of 4 fees known), funding",
        "fills (1 of 4 closed PnLs, 0 of 4 fees known), funding",
        "fills, funding",
        "fills (5 of 5 closed PnLs, 4 of 5 fees known), funding",
        "fills (4 of 5 closed PnLs, 5 of 5 fees known), funding",
    ]
