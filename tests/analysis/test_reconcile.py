"""Reconciliation: by hand, on the simulated exchange for every account and mode, by causes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from toolkit.errors import MissingColumns
from toolkit.pnl import reconcile, unrealised
from toolkit.simulation.history import run_history
from toolkit.simulation.markets import PERPS

from .examples import HOUR, ME, MONDAY, OTHER, times
from .simulated import everybody, floats
from .test_attribution import two_fills, two_ledgers, two_payments
from .test_round_trips import listed_rows

NONE = float("nan")
ODD = "without an amount in USD"


@pytest.fixture(scope="module")
def tables(world):
    made = everybody(world)
    return replace(
        made,
        **{
            name: floats(getattr(made, name)) for name in ("fills", "funding", "ledger", "contexts")
        },
        states=tuple(map(floats, made.states)),
        snapshots=list(map(floats, made.snapshots)),
    )


def example(mode=0, value=1054.5):
    """1000 in, 2 BTC at 100, 1 sold at 150, 1 left at 105; 0.25 funding; 50 USDC to spot.

    There 20 of them buy PURR, with a fee in PURR, and 10 come back for half of it, less 0.1.
    """
    fills = pd.DataFrame(
        [
            ("BTC", 100.0, 2.0, "B", 1, 0.0, 0.0, 0.5, 0.2, "USDC"),
            ("BTC", 150.0, 1.0, "A", 2, 2.0, 50.0, 0.25, 0.0, "USDC"),
            ("PURR/USDC", 0.5, 40.0, "B", 3, 0.0, 0.0, 0.1, NONE, "PURR"),
            ("PURR/USDC", 0.5, 20.0, "A", 4, 39.9, 0.0, 0.1, NONE, "USDC"),
        ],
        columns=["coin", "px", "sz", "side", "time", "start_position", "closed_pnl", "fee",
                 "builder_fee", "fee_token"],
    )  # fmt: skip
    ledger = pd.DataFrame(
        [
            ("deposit", 1000.0, None),
            ("accountClassTransfer", 50.0, False),
            ("liquidation", 777.0, None),
        ],
        columns=["type", "usdc", "to_perp"],
    ).astype({"to_perp": "boolean"})
    end = pd.DataFrame({"user": [ME], "account_value": [value], "time": times([MONDAY + HOUR])})
    return {
        "fills": fills.assign(user=ME, time=times(MONDAY + fills["time"])),
        "funding": pd.DataFrame(
            {"user": [ME], "coin": ["BTC"], "usdc": [0.25], "time": end["time"]}
        ),
        "ledger": ledger.assign(account=ME, time=times([MONDAY, MONDAY + 2, MONDAY + 3])),
        "end": end if mode is None else end.assign(account_mode=mode),
        "positions": pd.DataFrame({"user": [ME], "coin": "BTC", "szi": 1.0, "unrealized_pnl": 5.0}),
    }


def done(made, **more):
    start = more.pop("start", None)
    end = (made["end"], made["positions"])
    return reconcile(start, end, made["fills"], made["funding"], made["ledger"], **more).iloc[0]


def close(value):
    return pytest.approx(value, abs=1e-10)


def test_standard_account_by_hand():
    """950 in, 50 closed, 5 open, 0.75 fees (0.2 of them the builder's), 0.25 funding: 1004.5."""
    row = done(example(0, 1004.5))
    parts = {"closed_pnl": 50, "trading_fee": -0.55, "builder_fee": -0.2, "funding": 0.25}
    parts |= {"unrealised": 5, "ledger": 950, "spot_cash": 0, "residual": 0, "change": 1004.5}
    assert row[list(parts)].to_dict() == close(parts)
    assert row["causes"] == ""


def test_unified_account_with_wallet_has_no_residual():
    """The 50 stay its own: less 20 for PURR, plus 10 back, less 0.1; PURR's fee is in PURR."""
    for mode in (2, 3):
        row = done(example(mode, 1004.5 + 50 - 20 + 10 - 0.1))
        assert (row["spot_cash"], row["residual"]) == close((39.9, 0))
        assert row["account_mode"] == mode


def test_spot_dust_is_cut_to_eight_decimals():
    """39.9 PURR less 20 make 19.9: a thousandth of them at 0.5000005 pays 0.00995000|995."""
    result = example(2, 1004.5 + 50 - 20 + 10 - 0.1 + 0.00995000)
    dust = result["fills"].iloc[3:].assign(px=0.5000005, sz=0.0199, fee=0.0, start_position=19.9)
    result["fills"] = pd.concat([result["fills"], dust], ignore_index=True)
    result["fills"]["tid"] = [1, 2, 3, 4, 0]
    assert done(result)["residual"] == close(0)
    result["fills"]["tid"] = 5
    assert done(result)["residual"] == close(-9.95e-9)


def test_unified_account_with_zero_state_has_residual():
    """A clearinghouse state of 0 leaves all of it as a residual, instead of hiding it."""
    row = done(example(None, 0.0))
    assert row["residual"] == row["unexplained"] == close(-1004.5)
    assert row["causes"] == "no known cause"
    assert pd.isna(row["account_mode"])


@pytest.mark.parametrize("name", ["px", "sz", "side"])
def test_unpriced_spot_fill_hides_unified_cash(name):
    """A unified account's cash is then missing, and says why; a standard one does not count it."""
    odd = example(2, 1044.5)
    odd["fills"].loc[3, name] = None if name == "side" else np.nan
    row = done(odd)
    assert row[["spot_cash", "residual", "not_priced", "unexplained"]].isna().all()
    assert row["causes"] == f"1 fill, fee or flow {ODD}, spot_cash not known"
    standard = done(odd | {"end": example(0, 1004.5)["end"]})
    assert standard[["spot_cash", "residual", "causes"]].tolist() == [0, close(0), ""]


def test_causes_have_columns():
    late = example(0, 1004.5)
    late["fills"] = late["fills"].iloc[1:]
    row = done(late)
    assert row["history_late"] == row["residual"] == close(-0.5)
    assert (row["unexplained"], row["not_priced"]) == (0, 0)
    assert row["causes"] == "fills missing of BTC"

    odd = example(0, 1004.5)
    odd["fills"].loc[1, "fee"] = np.nan
    row = done(odd)
    assert row["not_priced"] == row["residual"] == close(-0.25)
    assert row["causes"] == f"1 fill, fee or flow {ODD}"

    # The 10 USDC that came back for PURR, with a fee that is not known: 0.1 of them are gone.
    for mode, value, wanted in ((2, 1044.4, -0.1), (0, 1004.5, 0)):
        odd = example(mode, value)
        odd["fills"].loc[3, "fee"] = np.nan
        row = done(odd)
        assert row["residual"] == close(wanted)
        assert row["not_priced"] == close(wanted)

    strange = example(0, 1104.5)
    more = strange["ledger"].head(1).assign(type="somethingNew", usdc=100.0)
    strange["ledger"] = pd.concat([strange["ledger"], more])
    assert done(strange)["not_priced"] == close(100)

    row = done(example(0, 1005.5))
    assert row["unexplained"] == row["residual"] == close(1)
    near = done(example(0, 1004.504))  # within the tolerance
    assert (near["unexplained"], near["residual"]) == (0, close(0.004))
    assert done(example(0, 1004.504), tolerance=0.001)["unexplained"] > 0


def test_null_amount_is_no_missing_fill():
    """Only what is missing is named: the positions of the other fills still join up."""
    for name in ("closed_pnl", "px", "sz", "start_position"):
        odd = example(0, 1004.5)
        odd["fills"].loc[1, name] = np.nan
        row = done(odd)
        assert "fills missing" not in row["causes"]
        assert row["history_late"] == 0
        if name == "closed_pnl":
            assert row["not_priced"] == row["residual"] != 0
            assert row["causes"] == f"1 fill, fee or flow {ODD}"
            odd["fills"] = odd["fills"].iloc[1:]  # BTC's first fill is gone, too
            assert done(odd)["causes"] == f"fills missing of BTC, 1 fill, fee or flow {ODD}"


def test_unknown_parts_are_missing():
    result = example(0, 1004.5)
    row = reconcile(None, result["end"], result["fills"], None, None).iloc[0]
    assert row[["funding", "ledger", "unrealised", "residual", "unexplained"]].isna().all()
    assert row["causes"] == "funding not known, unrealised not known, ledger not known"
    only = result["end"].assign(user=OTHER)
    row = reconcile(only, result["end"], result["fills"], None, None, start_time=0).iloc[0]
    assert pd.isna(row["start_value"])
    assert "start_value not known" in row["causes"]


def test_parts_without_fills_are_missing():
    """A unified account's spot cash needs fills, a standard account's is 0."""
    for mode, lacking in ((0, []), (2, ["spot_cash"])):
        row = done(example(mode) | {"fills": None})
        assert row[["funding", "unrealised", "ledger"]].tolist() == [0.25, 5, 950]
        lacks = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", *lacking]
        assert row["causes"] == ", ".join(f"{name} not known" for name in lacks)
        assert row[[*lacks, "residual", "unexplained"]].isna().all()
        assert lacking or row["spot_cash"] == 0


def test_state_without_time_counts_all_rows():
    """States of 2023 do not say when they were taken."""
    result = example(0, 1004.5)
    result["end"]["time"] = pd.to_datetime([None], utc=True)
    assert done(result)["residual"] == close(0)
    early = done(result, end_time=MONDAY + 1)
    assert early[["closed_pnl", "ledger"]].tolist() == [0, 1000]
    with pytest.raises(ValueError, match="start_time="):
        reconcile(result["end"], result["end"], result["fills"], None, None)


def test_spot_cash_excludes_other_quote_tokens():
    """The buy of PURR/USDH says PURR alone; its sell says what both are quoted in."""
    result = example(2, 1004.5 + 50)
    result["fills"]["fee_token"] = ["USDC", "USDC", "PURR", "USDH"]
    result["fills"]["coin"] = ["BTC", "BTC", "@7", "@7"]
    assert done(result)[["spot_cash", "residual"]].tolist() == close([50, 0])


# --- chains of fills of two accounts and many coins ---

#   user  coin  hour start  change px    closed
FILLS = [
    # A fill without a start position is between the others: nothing is known to be missing.
    (ME, "BTC", 1, 0, 2, 10.0, 0.0), (ME, "BTC", 2, NONE, 1, 10.0, 0.0),
    (ME, "BTC", 3, 3, -1, 10.0, 0.0),
    # The same before the first fill; but the last fill ends at 7, and the state has 6.
    (ME, "ETH", 1, NONE, 5, 10.0, 0.0), (ME, "ETH", 2, 5, 2, 10.0, 0.0),
    # It ends at 0, and the state does not have it.
    (ME, "SOL", 1, 0, 1, 10.0, 0.0), (ME, "SOL", 2, 1, -1, 10.0, 0.0),
    # A fill without a price ends at 5, and the next one starts at 7.
    (ME, "DOGE", 1, 0, 5, NONE, NONE), (ME, "DOGE", 2, 7, 1, 10.0, 0.0),
    # A fill without a start position is in the millisecond of the next or of the last one.
    (ME, "XRP", 1, 0, 1, 10.0, 0.0), (ME, "XRP", 2, NONE, 4, 10.0, 0.0),
    (ME, "XRP", 2, 5, 1, 10.0, 0.0),
    (ME, "AVAX", 1, 0, 1, 10.0, 0.0), (ME, "AVAX", 1, NONE, 3, 10.0, 0.0),
    (ME, "AVAX", 3, 4, 1, 10.0, 0.0),
    # It is after the last one, or in its millisecond.
    (ME, "LINK", 1, 0, 1, 10.0, 0.0), (ME, "LINK", 2, NONE, 8, 10.0, 0.0),
    (ME, "UNI", 2, 0, 1, 10.0, 0.0), (ME, "UNI", 2, NONE, 1, 10.0, 0.0),
    # It is long before: 1 + 3 is 4, and not 9.
    (ME, "ARB", 1, NONE, 1, 10.0, 0.0), (ME, "ARB", 2, 1, 3, 10.0, 0.0),
    (ME, "ARB", 3, 9, 1, 10.0, 0.0),
    # Another account has the same coins; a short of 2.5 starts as one of 2.
    (OTHER, "BTC", 1, 0, 1, 10.0, 0.0), (OTHER, "ARB", 1, 0, -2.5, 10.0, 0.0),
    (OTHER, "ARB", 2, -2, 1, 10.0, 0.0),
]  # fmt: skip
SPOTS = [
    (ME, "@7", 1, 0, 4, NONE, 0.0), (OTHER, "@7", 1, 0, 4, NONE, 0.0),
    (OTHER, "@8", 2, 0, NONE, 10.0, 0.0), (OTHER, "@8", 3, 0, 1, 10.0, 0.0),
]  # fmt: skip
ENDS = [
    (ME, "BTC", 2), (ME, "ETH", 6), (ME, "DOGE", 8), (ME, "XRP", 6), (ME, "AVAX", 5),
    (ME, "LINK", 9), (ME, "UNI", 3), (ME, "ARB", 10), (OTHER, "BTC", 1), (OTHER, "ARB", -1),
    (OTHER, "ETH", 2), (OTHER, "OP", 0), ("0x" + "c" * 40, "BTC", 3),
]  # fmt: skip


def make_fills(rows):
    names = ["user", "coin", "time", "start_position", "change", "px", "closed_pnl"]
    frame = pd.DataFrame(rows, columns=names)
    change = frame.pop("change").astype(float)
    frame["time"] = times(MONDAY + hour * HOUR for hour in frame["time"])
    frame["start_position"] = frame["start_position"].astype(float)
    return frame.assign(side=change.map(lambda c: "A" if c < 0 else "B"), sz=change.abs(), fee=0.0)


def make_state(hour, rows):
    values = pd.DataFrame({"user": [ME, OTHER], "account_value": 1000.0, "account_mode": [0, 2]})
    values["time"] = times([MONDAY + int(hour * HOUR)] * 2)
    if rows is None:
        return values
    held = pd.DataFrame(rows, columns=["user", "coin", "szi"]).astype({"szi": float})
    return values, held.assign(unrealized_pnl=0.0)


def causes(start, end, fills):
    moved = pd.DataFrame({"account": [ME, ME, OTHER], "type": ["new", "new", "deposit"]})
    moved = moved.assign(usdc=[1.0, 2.0, 100.0], time=times([MONDAY + HOUR] * 3))
    found = reconcile(start, end, fills, None, moved)["causes"]
    return [text.replace(", funding not known", "") for text in found]


def test_causes_of_two_accounts_by_hand():
    """A chain with a fill whose position is not known proves nothing about the time of it."""
    end = make_state(9, ENDS)
    mine = f"fills missing of ARB, DOGE, ETH, 3 fills, fees or flows {ODD}"
    for start in (None, make_state(0.5, [])):
        assert causes(start, end, make_fills(FILLS)) == [mine, "fills missing of ARB, ETH"]


def test_causes_without_stated_positions():
    """Without the first positions, or the last ones, only fills are compared with each other."""
    fills = make_fills([*FILLS, (ME, "OP", 2, 6, 1, 10.0, 0.0)])
    lacks = "unrealised not known"
    both = f"fills missing of ARB, DOGE, 3 fills, fees or flows {ODD}, {lacks}"
    start, end = make_state(0.5, None), make_state(9, ENDS)
    assert causes(start, end, fills) == [both, f"fills missing of ARB, {lacks}"]
    # Before everything, all positions are 0: OP starts at 6.
    both = both.replace("DOGE", "DOGE, OP")
    assert causes(None, make_state(9, None), fills) == [both, f"fills missing of ARB, {lacks}"]


def test_unpriced_spot_fills_count_if_unified():
    """They count for the unified account only, whose value contains its USDC."""
    end = make_state(9, [(ME, "BTC", 3), (OTHER, "ARB", -1)])
    fills = make_fills([*SPOTS, (ME, "BTC", 1, 0, 2, NONE, NONE), *FILLS[-2:]])
    assert causes(None, end, fills) == [
        f"fills missing of BTC, 3 fills, fees or flows {ODD}",
        f"fills missing of ARB, 2 fills, fees or flows {ODD}, spot_cash not known",
    ]


# --- a standard account and a unified one between two times ---


def state(hour, worth, rows):
    values = pd.DataFrame({"user": [OTHER, ME], "account_value": worth, "account_mode": [2, 0]})
    values["time"] = times([MONDAY + int(hour * HOUR)] * 2)
    return values, pd.DataFrame(rows, columns=["user", "coin", "szi", "unrealized_pnl"])


START = state(1, [40.0, 111.5], [(ME, "flx:TSLA", -2.0, -3.0), (ME, "BTC", 0.0, 0.25)])
END = state(
    5,
    [300.0, 250.0],
    [(ME, "flx:TSLA", 3.0, 5.0), (OTHER, "ETH", 0.5, 0.75), (ME.upper(), "BTC", 5.0, -8.0)],
)
MODES = [(ME, 0), (OTHER.lower(), 2)]
SINCE_START = [
    [111.5, 250, 138.5, 12, -1.0625, -0.1875, -0.5, 0, 8.75, -0.25, -3, 0, 122.75, 122.75, 0, 0, 0],
    [40, 300, 260, -8.75, 0, 0, 0, 0, 384.125, 0.75, -7, 0.25, -109.375, -109.375, 0, 0, 0],
]
SINCE_EVER = [
    [0, 250, 250, 17.5, -1.35625, -0.21875, -0.7, 0, 73.25, -3, 97, 0, 67.525, 67.525, 0, 0, 0],
    [0, 300, 300, -8.75, 0, 0, 0, 0, 384.125, 0.75, 23, 0.25, -99.375, -99.375, 0, 0, 0],
]
ETH = f"fills missing of ETH, funding (1 of 2 position hours), 2 fills, fees or flows {ODD}"
BTC_SINCE_START = (
    f"fills missing of BTC, funding (3 of 5 position hours), 1 fill, fee or flow {ODD}"
)
BTC_SINCE_EVER = (
    f"fills missing of BTC, funding (5 of 7 position hours), 2 fills, fees or flows {ODD}"
)


@pytest.fixture
def given():
    return {"fills": two_fills(), "funding": two_payments(), "ledger": two_ledgers()}


def test_changes_of_two_accounts_by_hand(given):
    """Rows at the first time do not count, and those at the last time do.

    The state has 0.5 ETH, and the fills, which are all of whole ETH, end at 0.
    """
    for start, wanted, text in (
        (START, SINCE_START, BTC_SINCE_START),
        (None, SINCE_EVER, BTC_SINCE_EVER),
    ):
        result = reconcile(start, END, **given)
        assert result.pop("causes").tolist() == [text, ETH]
        for row, mode, amounts in zip(listed_rows(result), MODES, wanted, strict=True):
            assert row == (*mode, *(round(v, 9) for v in amounts))
    near = reconcile(START, END, **given, tolerance=110)
    assert near[["history_late", "funding_missing"]].to_numpy().tolist() == [[122.75, 0], [0, 0]]


def test_absent_frames_leave_parts_missing(given):
    """Without positions or funding the parts are missing; a new account has no first value."""
    bare = reconcile(START[0].head(1), END[0], **given)
    assert bare["start_value"].isna().tolist() == [True, False]
    assert bare["closed_pnl"].tolist() == [0, -8.75]
    assert bare[["unrealised", "residual"]].isna().all(axis=None)
    assert set(bare["causes"].str.split(", ").str[-1]) == {"unrealised not known"}
    unpaid = reconcile(START, END, **given | {"funding": None})
    assert unpaid["funding"].isna().all()
    assert unpaid["ledger"].tolist() == [-3, -7]

    # At 6:00 the second account swaps outcome tokens, which bring no cash.
    end = END[0].assign(time=times([MONDAY + 7 * HOUR] * 2)), END[1]
    assert reconcile(START, end, **given)["spot_cash"].tolist() == [0, 0.25]


OWNER = {"fills": "user", "funding": "user", "ledger": "account"}


def test_rows_count_for_their_account(given):
    """Rows of a third account do not count; rows without a name are of the only account."""
    third = {n: pd.concat([f, f.assign(**{OWNER[n]: "0x" + "c" * 40})]) for n, f in given.items()}
    pd.testing.assert_frame_equal(reconcile(START, END, **third), reconcile(START, END, **given))
    end = tuple(frame[frame["user"].str.lower() == ME] for frame in END)
    unnamed = {n: f[f[OWNER[n]].str.lower() == ME].drop(columns=OWNER[n]) for n, f in given.items()}
    expected = reconcile(None, end, **given)
    for more in ({}, {"account": ME}):
        pd.testing.assert_frame_equal(reconcile(None, end, **unnamed, **more), expected)


def test_wrong_frames_are_named(given):
    no_time = END[0].drop(columns="time")
    wrong = [
        (MissingColumns, "account_value", {"end": END[0].drop(columns="account_value")}),
        (ValueError, "start_time=", {"start": no_time}),
        (MissingColumns, "coin", {"end": (END[0], END[1].assign(coin=None))}),
        (ValueError, "account=", {"fills": given["fills"].drop(columns="user")}),
    ]
    for name, frame in given.items():
        owner = OWNER[name]
        late = frame.assign(time=frame["time"].where(frame["time"] != frame["time"].max()))
        wrong += [
            (MissingColumns, f"^{name}: .*time .* missing", {name: late}),
            (ValueError, f"^{name}: .*{owner}.* 2 acc", {name: frame.drop(columns=owner)}),
        ]
    for error, named, change in wrong:
        with pytest.raises(error, match=named):
            reconcile(**{"start": START, "end": END, **given} | change)


# --- the simulated exchange ---


def is_zero(column):
    return (column.abs() < 1e-6).all()


def test_simulated_accounts_have_no_residual(tables, world):
    """From nothing to the end, by snapshot and by state: no residual at all, for anybody."""
    by_snapshot = (tables.snapshots[-1], tables.states[1])
    modes = tables.snapshots[-1].groupby("user")["account_mode"].max()
    for end in (by_snapshot, tables.states):
        rows = reconcile(None, end, tables.fills, tables.funding, tables.ledger)
        assert len(rows) == len(world.expected | world.expected_mixed)
        if end is tables.states:  # states do not have the collateral of the others
            shared = rows["user"].map(modes) >= 2
            held = rows["user"].isin(end[1]["user"])
            assert rows.loc[shared & held, "causes"].eq("end_value not known").any()
            rows = rows[~shared]
        assert rows["residual"].notna().all()
        assert is_zero(rows["residual"]), rows[rows["residual"] != 0]
        assert (rows["causes"] == "").all()
        if end is by_snapshot:
            assert set(rows["account_mode"]) == {0, 1, 2, 3}
            assert (rows.loc[rows["account_mode"] >= 2, "spot_cash"] != 0).any()


def test_change_between_snapshots_has_no_residual(tables, world):
    """Twenty minutes: what was open at first is told by the fills and the marks of the moment."""
    exchange = run_history(world.seed, world.size)
    ends = []
    for snapshot, time in zip(tables.snapshots, tables.times, strict=True):
        prices = exchange.prices.mark[:, exchange.minute_of(time)]
        marks = {
            perp.coin: int(px) / 10**perp.px_decimals
            for perp, px in zip(PERPS, prices, strict=True)
        }
        ends.append((snapshot, unrealised(tables.fills, marks, tables.contexts, at=time)))
    rows = reconcile(
        ends[0], ends[-1], tables.fills, tables.funding, tables.ledger,
        start_time=tables.times[0], end_time=tables.times[-1],
    )  # fmt: skip
    assert (rows["change"] != 0).sum() > 20
    assert is_zero(rows["residual"]), rows[rows["residual"] != 0]
    assert (rows["causes"] == "").all()


def test_late_history_is_named(tables):
    """Without the first half of its fills, an account's residual stands under that cause."""
    half = tables.fills["time"].median()
    late = tables.fills[tables.fills["time"] > half]
    end = (tables.snapshots[-1], tables.states[1])
    rows = reconcile(None, end, late, tables.funding, tables.ledger)
    odd = rows[rows["residual"].abs() > 0.01]
    assert len(odd) > 20
    found = odd[odd["causes"].str.startswith("fills missing of")]
    assert (found["history_late"] == found["residual"]).all()
    # Who was flat by then leaves no trace in later fills.
    assert len(found) > 0.8 * len(odd)
    assert (odd.drop(found.index)["unexplained"] != 0).all()
