"""Reconciliation: by hand, on the simulated exchange for every account and mode, by causes."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tests.worlds import ON_DEMO, world_of
from toolkit.errors import MissingColumns
from toolkit.pnl import audit, reconcile, unrealised
from toolkit.simulation.history import SIZES, run_history
from toolkit.simulation.markets import PERPS

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times
from .simulated import EXACT, everybody

KINDS = ("float", "exact")


@pytest.fixture(scope="module")
def tables(world):
    return everybody(world)


def example(mode=0, value=1054.5):
    """1000 in, 2 BTC at 100, 1 sold at 150, 1 left at 105; 0.25 funding; 50 USDC to spot.

    There 20 of them buy PURR, with a fee in PURR, and 10 come back for half of it, less 0.1.
    """
    fills = pd.DataFrame(
        {
            "user": ME,
            "coin": ["BTC", "BTC", "PURR/USDC", "PURR/USDC"],
            "px": [100.0, 150.0, 0.5, 0.5],
            "sz": [2.0, 1.0, 40.0, 20.0],
            "side": ["B", "A", "B", "A"],
            "time": times([MONDAY + n for n in (1, 2, 3, 4)]),
            "start_position": [0.0, 2.0, 0.0, 39.9],
            "closed_pnl": [0.0, 50.0, 0.0, 0.0],
            "fee": [0.5, 0.25, 0.1, 0.1],
            "builder_fee": [0.2, 0.0, np.nan, np.nan],
            "fee_token": ["USDC", "USDC", "PURR", "USDC"],
        }
    )
    ledger = pd.DataFrame(
        {
            "account": ME,
            "time": times([MONDAY, MONDAY + 2, MONDAY + 3]),
            "type": ["deposit", "accountClassTransfer", "liquidation"],
            "usdc": [1000.0, 50.0, 777.0],
            "to_perp": pd.array([None, False, None], dtype="boolean"),
        }
    )
    funding = pd.DataFrame(
        {"user": [ME], "coin": ["BTC"], "time": times([MONDAY + HOUR]), "usdc": [0.25]}
    )
    end = pd.DataFrame({"user": [ME], "account_value": [value], "time": times([MONDAY + HOUR])})
    if mode is not None:
        end["account_mode"] = mode
    positions = pd.DataFrame({"user": [ME], "coin": ["BTC"], "szi": [1.0], "unrealized_pnl": [5.0]})
    return {
        "fills": fills, "funding": funding, "ledger": ledger, "end": end, "positions": positions
    }  # fmt: skip


def done(made, kind="exact", **more):
    given = {
        name: None if frame is None else as_numbers(frame, kind) for name, frame in made.items()
    }
    end = (given["end"], given["positions"])
    start = more.pop("start", None)
    return reconcile(start, end, given["fills"], given["funding"], given["ledger"], **more).iloc[0]


@pytest.mark.parametrize("kind", KINDS)
def test_standard_account_by_hand(kind):
    """950 in, 50 closed, 5 open, 0.75 fees (0.2 of them the builder's), 0.25 funding: 1004.5."""
    row = done(example(0, 1004.5), kind)
    assert float(row["change"]) == 1004.5
    parts = {"closed_pnl": 50, "trading_fee": -0.55, "builder_fee": -0.2, "funding": 0.25}
    parts |= {"unrealised": 5, "ledger": 950, "spot_cash": 0, "residual": 0}
    assert {name: float(row[name]) for name in parts} == pytest.approx(parts)
    assert row["causes"] == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", [2, 3])
def test_unified_account_with_wallet_has_no_residual(kind, mode):
    """The 50 stay its own: less 20 for PURR, plus 10 back, less 0.1; PURR's fee is in PURR."""
    row = done(example(mode, 1004.5 + 50 - 20 + 10 - 0.1), kind)
    assert float(row["spot_cash"]) == pytest.approx(39.9)
    assert float(row["residual"]) == pytest.approx(0, abs=1e-9)
    assert row["account_mode"] == mode


def test_spot_dust_is_cut_to_eight_decimals():
    """39.9 PURR less 20 make 19.9: a thousandth of them at 0.5000005 pays 0.00995000|995."""
    result = example(2, 1004.5 + 50 - 20 + 10 - 0.1 + 0.00995000)
    dust = result["fills"].iloc[3:].assign(px=0.5000005, sz=0.0199, fee=0.0, start_position=19.9)
    result["fills"] = pd.concat([result["fills"], dust], ignore_index=True).assign(
        tid=[1, 2, 3, 4, 0]
    )
    assert done(result)["residual"] == 0
    result["fills"]["tid"] = 5
    assert done(result)["residual"] == -Decimal("9.95E-9")


def test_unified_account_with_zero_state_has_residual():
    """A clearinghouse state of 0 leaves all of it as a residual, instead of hiding it."""
    row = done(example(None, 0.0))
    assert row["residual"] == -Decimal("1004.5")
    assert row["unexplained"] == row["residual"]
    assert row["causes"] == "no known cause"
    assert pd.isna(row["account_mode"])


def test_rows_outside_period_are_excluded():
    """From just after the deposit to just after the sale: 2 BTC at 100 open at first at 0."""
    result = example(0, 949.25 + 5.0)
    start = (
        pd.DataFrame({"user": [ME], "account_value": [999.5], "account_mode": [0]}),
        pd.DataFrame({"user": [ME], "coin": ["BTC"], "szi": [2.0], "unrealized_pnl": [0.0]}),
    )
    given = tuple(as_numbers(item, "exact") for item in start)
    row = done(result, start=given, start_time=MONDAY + 1, end_time=MONDAY + 3)
    assert row["closed_pnl"] == 50
    assert row["ledger"] == -50
    assert row["funding"] == 0
    assert row["residual"] == Decimal("954.25") - Decimal("999.5") - (50 - 50 + 5) + Decimal("0.25")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["px", "sz", "side"])
def test_unpriced_spot_fill_hides_unified_cash(engine, kind, name):
    """A unified account's cash is then missing, and says why; a standard one does not count it."""
    for mode, value in ((2, 1044.5), (0, 1004.5)):
        odd = example(mode, value)
        odd["fills"].loc[3, name] = None if name == "side" else np.nan
        given = {key: engine.give(as_numbers(frame, kind)) for key, frame in odd.items()}
        given["end"] = given["end"], given.pop("positions")
        row = engine.take(reconcile(None, **given))[0]
        if mode == 0:
            assert (row["spot_cash"], row["residual"], row["causes"]) == (0, 0, "")
            continue
        for part in ("spot_cash", "residual", "not_priced", "unexplained"):
            assert row[part] is None or np.isnan(row[part])
        assert "1 fill, fee or flow without an amount in USD" in row["causes"]
        assert "spot_cash not known" in row["causes"]


def test_causes_have_columns():
    late = example(0, 1004.5)
    late["fills"] = late["fills"].iloc[1:]
    row = done(late)
    assert row["history_late"] == row["residual"] == -Decimal("0.5")
    assert (row["unexplained"], row["not_priced"]) == (0, 0)
    assert row["causes"] == "fills missing of BTC"

    odd = example(0, 1004.5)
    odd["fills"].loc[1, "fee"] = np.nan
    row = done(odd)
    assert row["not_priced"] == row["residual"] == -Decimal("0.25")
    assert "1 fill, fee or flow without an amount" in row["causes"]

    # The 10 USDC that came back for PURR, with a fee that is not known: 0.1 of them are gone.
    for mode, value, wanted in ((2, 1044.4, "-0.1"), (0, 1004.5, "0")):
        odd = example(mode, value)
        odd["fills"].loc[3, "fee"] = np.nan
        assert done(odd)["not_priced"] == done(odd)["residual"] == Decimal(wanted)

    strange = example(0, 1104.5)
    strange["ledger"].loc[3] = [ME, times([MONDAY])[0], "somethingNew", 100.0, None]
    assert done(strange)["not_priced"] == 100

    row = done(example(0, 1005.5))
    assert row["unexplained"] == row["residual"] == 1


@pytest.mark.parametrize("name", ["closed_pnl", "px", "sz", "start_position"])
def test_null_amount_is_no_missing_fill(name):
    """Only what is missing is named: the positions of the other fills still join up."""
    odd = example(0, 1004.5)
    odd["fills"].loc[1, name] = np.nan
    row = done(odd)
    assert "fills missing" not in row["causes"]
    assert row["history_late"] == 0
    if name == "closed_pnl":
        assert row["not_priced"] == row["residual"] != 0
        assert row["causes"].startswith("1 fill, fee or flow without an amount in USD")


def test_null_amount_and_missing_fill_are_named():
    """BTC's first fill is gone and its second has no closed PnL: both causes are true."""
    odd = example(0, 1004.5)
    odd["fills"].loc[1, "closed_pnl"] = np.nan
    odd["fills"] = odd["fills"].iloc[1:]
    row = done(odd)
    assert "fills missing of BTC" in row["causes"]
    assert "1 fill, fee or flow without an amount in USD" in row["causes"]


def test_unknown_parts_are_missing():
    result = {name: as_numbers(item, "exact") for name, item in example(0, 1004.5).items()}
    row = reconcile(None, result["end"], result["fills"], None, None).iloc[0]
    for name in ("funding", "ledger", "unrealised", "residual", "unexplained"):
        assert pd.isna(row[name]), name
    assert row["causes"] == "funding not known, unrealised not known, ledger not known"
    only = result["end"].assign(user=OTHER)
    row = reconcile(only, result["end"], result["fills"], None, None, start_time=0).iloc[0]
    assert pd.isna(row["start_value"])
    assert "start_value not known" in row["causes"]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_without_fills_are_missing(kind):
    """A unified account's spot cash needs fills, a standard account's is 0."""
    for mode, spot_cash in ((0, 0.0), (2, None)):
        row = done(example(mode) | {"fills": None}, kind)
        assert [float(row[name]) for name in ("funding", "unrealised", "ledger")] == [0.25, 5, 950]
        lacks = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate"]
        lacks += [] if spot_cash == 0 else ["spot_cash"]
        assert row["causes"] == ", ".join(f"{name} not known" for name in lacks)
        for name in (*lacks, "residual", "unexplained"):
            assert pd.isna(row[name]), name
        assert spot_cash is None or row["spot_cash"] == spot_cash


def test_state_without_time_counts_all_rows():
    """States of 2023 do not say when they were taken."""
    result = example(0, 1004.5)
    result["end"]["time"] = pd.to_datetime([None], utc=True)
    assert done(result)["residual"] == 0
    early = done(result, end_time=MONDAY + 1)
    assert float(early["closed_pnl"]) == 0
    assert float(early["ledger"]) == 1000
    with pytest.raises(ValueError, match="start_time="):
        reconcile(result["end"], result["end"], result["fills"], None, None)


@pytest.mark.parametrize("what", ["fills", "funding", "ledger"])
def test_rows_without_time_are_refused(what):
    result = example(0, 1004.5)
    result[what]["time"] = result[what]["time"].where([False] + [True] * (len(result[what]) - 1))
    with pytest.raises(MissingColumns, match=rf"^{what}: column time has 1 missing value"):
        done(result)


def test_spot_cash_excludes_other_quote_tokens():
    """The buy of PURR/USDH says PURR alone; its sell says what both are quoted in."""
    result = example(2, 1004.5 + 50)
    result["fills"]["fee_token"] = ["USDC", "USDC", "PURR", "USDH"]
    result["fills"]["coin"] = ["BTC", "BTC", "@7", "@7"]
    row = done(result)
    assert row["spot_cash"] == 50
    assert row["residual"] == 0


def test_residual_within_tolerance_is_explained():
    row = done(example(0, 1004.504), "float")
    assert row["unexplained"] == 0
    assert row["residual"] == pytest.approx(0.004)
    assert done(example(0, 1004.504), "float", tolerance=0.001)["unexplained"] > 0


def test_errors_name_the_parameter():
    result = example()
    no_time = result["end"].drop(columns="time")
    with pytest.raises(ValueError, match="start_time="):
        reconcile(no_time, result["end"], result["fills"], None, None)
    both = pd.concat([result["end"], result["end"].assign(user=OTHER)])
    with pytest.raises(ValueError, match="account="):
        reconcile(None, both, result["fills"].drop(columns="user"), None, None)
    with pytest.raises(MissingColumns, match="account_value"):
        reconcile(None, result["end"].drop(columns="account_value"), result["fills"], None, None)


def test_simulated_accounts_have_no_residual(tables, world):
    """From nothing to the end, by snapshot and by state: no residual at all, for anybody."""
    values = (tables.snapshots[-1], tables.states.positions)
    for end in (values, tables.states):
        rows = reconcile(None, end, tables.fills, tables.funding, tables.ledger)
        assert len(rows) == len(world.expected | world.expected_mixed)
        assert rows["residual"].notna().all()
        assert (rows["residual"] == 0).all(), rows[rows["residual"] != 0]
        assert (rows["causes"] == "").all()
    modes = reconcile(None, values, tables.fills, tables.funding, tables.ledger)
    assert set(modes["account_mode"]) == {0, 1, 2, 3}
    unified = modes[modes["account_mode"] >= 2]
    assert (unified["spot_cash"] != 0).any()


def test_change_between_snapshots_has_no_residual(tables, world):
    """Twenty minutes: what was open at first is told by the fills and the marks of the moment."""
    state = run_history(world.seed, SIZES[world.size])
    prices = state.exchange.prices.mark
    open_ = []
    for time in (tables.times[0], tables.times[-1]):
        minute = state.exchange.minute_of(time)
        marks = pd.DataFrame(
            {
                "name": pd.array([perp.coin for perp in PERPS], dtype="str"),
                "mark_px": pd.array(
                    [
                        Decimal(int(prices[coin, minute])).scaleb(-perp.px_decimals)
                        for coin, perp in enumerate(PERPS)
                    ],
                    dtype=EXACT,
                ),
            }
        )
        open_.append(unrealised(tables.fills, marks, tables.contexts, at=time))
    start, end = ((tables.snapshots[n], open_[n]) for n in (0, -1))
    rows = reconcile(
        start, end, tables.fills, tables.funding, tables.ledger,
        start_time=tables.times[0], end_time=tables.times[-1],
    )  # fmt: skip
    assert (rows["change"] != 0).sum() > 20
    assert (rows["residual"] == 0).all(), rows[rows["residual"] != 0]
    assert (rows["causes"] == "").all()


def test_late_history_is_named(tables):
    """Without the first half of its fills, an account's residual stands under that cause."""
    half = tables.fills["time"].median()
    late = tables.fills[tables.fills["time"] > half]
    end = (tables.snapshots[-1], tables.states.positions)
    rows = reconcile(None, end, late, tables.funding, tables.ledger)
    odd = rows[rows["residual"] != 0]
    assert len(odd) > 20
    found = odd[odd["causes"].str.startswith("fills missing of")]
    assert (found["history_late"] == found["residual"]).all()
    # Who was flat by then leaves no trace in later fills.
    assert len(found) > 0.8 * len(odd)
    assert (odd.drop(found.index)["unexplained"] != 0).all()


def test_audit_of_simulation_has_no_differences(tables):
    perps = tables.fills[~tables.fills["coin"].str.contains("^@|/|^#")]
    result = audit(perps, tables.contexts)
    assert (result["difference"] == 0).all()
    assert result["expected_closed_pnl"].notna().all()
    assert not result["chain_break"].any()


@ON_DEMO
def test_demo_accounts_have_no_residual():
    """Thirty days: accounts of every mode, spot traders, vaults, the liquidated."""
    world = world_of("demo")
    modes = {row.user: row.account_mode for row in _last(world)}
    sample = [
        user
        for mode in (0, 1, 2, 3)
        for user in [item for item in modes if modes[item] == mode and item in world.expected][:4]
    ]
    sample += [*list(world.expected_mixed)[:6], world.examples["LIQUIDATED"]]
    tables = everybody(world, list(dict.fromkeys(sample)))
    end = (tables.snapshots[-1], tables.states.positions)
    rows = reconcile(None, end, tables.fills, tables.funding, tables.ledger)
    assert set(rows["account_mode"]) == {0, 1, 2, 3}
    assert (rows["residual"] == 0).all(), rows[rows["residual"] != 0]


def _last(world):
    return [row for rows in world.sources.account_snapshots[-1].values.values() for row in rows]
