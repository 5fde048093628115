"""Attribution: by hand, as identities, on every engine, and on the simulated exchange."""

from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

from toolkit.errors import MissingAmounts, MissingColumns
from toolkit.pnl import attribution

from .examples import (
    DAY,
    EXACT,
    ME,
    MONDAY,
    OTHER,
    as_numbers,
    exact,
    fills,
    funding,
    ledger,
    times,
)

KINDS = ("float", "exact")
GROUPS = (None, "coin", "dex", "user", "side", ["day", "user"], "week", ["crossed", "dir"])
PARTS = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate")


def one(result):
    assert len(result) == 1
    return {
        name: float(value) if name != "covers" else value
        for name, value in result.iloc[0].items()
        if not pd.isna(value)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_attribution_by_hand(kind):
    """The builder fee is inside the fee; PURR's, 0.07 at 0.5, in its cost; HYPE's has no price."""
    frames = (as_numbers(frame, kind) for frame in (fills(), funding(), ledger()))
    total = one(attribution(*frames, account=ME))
    expected = {
        "fills": 7,
        "volume": 100 + 110 + 400 + 50 + 20 + 3000 + 3000,
        "closed_pnl": 8.0,
        "trading_fee": -(0.04 + 0.05 + 0.05 + 0.02),
        "builder_fee": -0.02,
        "deployer_fee": -0.05,
        "rebate": 0.3,
        "funding": -0.75,
        "net": 8.0 - 0.16 - 0.02 - 0.05 + 0.3 - 0.75,
        "ledger": 1000 - 51 - 21 - 5 + 7,
        "equity_change": 930 + 7.32 - (3 - 0.02),  # but for PURR and @107, on spot
        "priority_gas": 0.0,
        "fees_in_cost": -0.035,
        "funding_outside": 0.0,
        "missing_amounts": 0,
        "unpriced_fees": 1,
        "unknown_flows": 1,
        "conversions": 0,
        "at_par": 0,
        "covers": "fills, funding, ledger",
    }
    assert total == pytest.approx(expected, abs=1e-12)
    assert list(total) == list(expected)


def test_exact_sums_are_exact():
    total = attribution(exact(fills()), exact(funding()), exact(ledger()), account=ME).iloc[0]
    assert total["net"] == Decimal("7.32")
    assert total["equity_change"] == Decimal("934.340")
    assert total["trading_fee"] == Decimal("-0.16")


def test_uncovered_sources_are_missing():
    for kind in KINDS:
        total = attribution(as_numbers(fills(), kind)).iloc[0]
        assert total["covers"] == "fills"
        assert pd.isna(total[["funding", "ledger", "equity_change"]]).all()
        assert float(total["net"]) == pytest.approx(8.07)


@pytest.mark.parametrize("name", ["px", "sz"])
def test_unpriced_fill_is_not_in_volume(engine, name):
    """Null or NaN, it is counted, and the volume is that of the others."""
    gone = fills()
    whole = gone["px"] * gone["sz"]
    gone.loc[0, name] = np.nan
    with pytest.warns(MissingAmounts, match=f"of 7 rows, {name} is missing in 1"):
        row = engine.take(attribution(engine.give(gone)))[0]
    assert (row["missing_amounts"], row["volume"]) == (1, whole.iloc[1:].sum())
    nan = pl.from_pandas(gone).with_columns(pl.col(name).fill_null(float("nan")))
    with pytest.warns(MissingAmounts):
        odd = attribution(nan).to_dicts()[0]
    assert (odd["missing_amounts"], odd["volume"]) == (1, whole.iloc[1:].sum())


def test_missing_amounts_are_counted(engine):
    """BTC's 10 and HYPE's fee are gone: the sums lack them, and the row says so."""
    for kind in KINDS:
        gone = fills()
        gone.loc[1, "closed_pnl"] = np.nan
        gone.loc[6, "fee"] = np.nan
        with pytest.warns(
            MissingAmounts, match="closed_pnl is missing in 1 and fee is missing in 1"
        ) as warned:
            row = engine.take(attribution(engine.give(as_numbers(gone, kind))))[0]
        assert len(warned) == 1
        assert row["covers"] == "fills (6 of 7 closed PnLs, 6 of 7 fees known)"
        assert row["missing_amounts"] == 2
        assert float(row["closed_pnl"]) == pytest.approx(8 - 10)
        assert float(row["net"]) == pytest.approx(8.07 - 10)
        assert row["unpriced_fees"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_unknown_fee(engine, kind):
    """BTC's buy and TSLA lack their fee: their 0.01 and 0.05 are no rebates of 0.06."""
    gone = fills()
    gone.loc[[0, 2], "fee"] = np.nan
    words = "fee is missing in 2.*its parts builder_fee and deployer_fee do not count"
    with pytest.warns(MissingAmounts, match=words):
        result = attribution(engine.give(as_numbers(gone, kind)), by="coin")
    rows = {row["coin"]: row for row in engine.take(result)}
    btc, tsla = rows["BTC"], rows["flx:TSLA"]
    assert float(btc["trading_fee"]) == pytest.approx(-0.05)
    assert float(btc["builder_fee"]) == pytest.approx(-0.01)
    assert (float(btc["rebate"]), float(btc["deployer_fee"])) == (0, 0)
    assert float(btc["net"]) == pytest.approx(10 - 0.06)
    assert btc["covers"] == "fills (2 of 2 closed PnLs, 1 of 2 fees known)"
    for name in ("trading_fee", "builder_fee", "deployer_fee", "rebate", "fees_in_cost", "net"):
        assert pd.isna(tsla[name])
    assert float(tsla["closed_pnl"]) == 0
    assert float(rows["ETH"]["rebate"]) == pytest.approx(0.3)


def test_warning_names_no_absent_fee_parts():
    """Frames without builder and deployer fees are told nothing of them."""
    gone = fills().drop(columns=["builder_fee", "deployer_fee"])
    gone.loc[0, "fee"] = np.nan
    with pytest.warns(MissingAmounts, match="fee is missing in 1") as warned:
        row = attribution(gone).iloc[0]
    assert "parts" not in str(warned[0].message)
    assert (row["rebate"], row["builder_fee"]) == (pytest.approx(0.3), 0)


def test_unrealised_is_change_between_positions(engine):
    """BTC went from -5 to +7, ETH was opened at a loss of 2; another's 100 are not ours."""
    before = pd.DataFrame({"user": [ME], "coin": ["BTC"], "unrealized_pnl": [-5.0]})
    after = pd.DataFrame(
        {"user": [ME, ME.upper(), OTHER], "coin": ["BTC", "ETH", "BTC"]}
        | {"unrealized_pnl": [7.0, -2.0, 100.0]}
    )
    for kind in KINDS:
        given = [engine.give(as_numbers(item, kind)) for item in (fills(), before, after)]
        rows = engine.take(attribution(given[0], by="coin", positions=(given[1], given[2])))
        assert {row["coin"]: float(row["unrealised"]) for row in rows if row["unrealised"]} == {
            "BTC": 12.0,
            "ETH": -2.0,
        }
        assert rows[0]["covers"] == "fills, unrealised"
        whole = engine.take(attribution(given[0], positions=(None, given[2])))[0]
        assert float(whole["unrealised"]) == 5.0
        split = engine.take(attribution(given[0], by="side", positions=(None, given[2])))[0]
        assert split["unrealised"] is None or np.isnan(split["unrealised"])
        assert "not unrealised (it has no side)" in split["covers"]


@pytest.mark.parametrize("kind", KINDS)
def test_missing_unrealised_is_not_zero(engine, kind):
    """BTC has no value after, and ETH none before: only the change of flx:TSLA is known."""
    rows = {"user": ME, "coin": ["BTC", "flx:TSLA", "ETH"]}
    ends = (
        pd.DataFrame({**rows, "unrealized_pnl": [-5.0, 1.0, np.nan]}),
        pd.DataFrame({**rows, "unrealized_pnl": [np.nan, 4.0, 2.0]}),
    )
    given = [engine.give(as_numbers(frame, kind)) for frame in (fills(), *ends)]
    rows = engine.take(attribution(given[0], by="coin", positions=(given[1], given[2])))
    coins = {row["coin"]: row for row in rows}
    assert float(coins["flx:TSLA"]["unrealised"]) == 3.0
    assert (coins["flx:TSLA"]["missing_amounts"], coins["PURR/USDC"]["unrealised"]) == (0, 0)
    whole = engine.take(attribution(given[0], positions=(given[1], given[2])))[0]
    for row, count in ((coins["BTC"], 1), (coins["ETH"], 1), (whole, 2)):
        assert row["unrealised"] is None or np.isnan(row["unrealised"])
        noun = "position" if count == 1 else "positions"
        words = f"fills, unrealised, without the unrealised PnL of {count} {noun}"
        assert (row["missing_amounts"], row["covers"]) == (count, words)


@pytest.mark.parametrize("kind", KINDS)
def test_funding_without_rows_is_not_covered(engine, kind):
    """Nor is one account among others; rows of an account without fills do not count."""
    rows = [as_numbers(frame, kind) for frame in (fills(), funding().iloc[:0])]
    seen = engine.take(attribution(*map(engine.give, rows)))
    assert [row["covers"] for row in seen] == ["fills, not funding (no rows)"]
    assert seen[0]["funding"] is None
    rows[1] = as_numbers(funding().assign(user="0xother"), kind)
    for account in (None, ME):
        seen = engine.take(attribution(*map(engine.give, rows), by=["user"], account=account))
        assert [(row["user"], row["covers"]) for row in seen] == [
            (ME, "fills, not funding (no rows)")
        ]
        assert seen[0]["funding"] is None
    seen = engine.take(attribution(*map(engine.give, rows), by=["user"], account="0xOther"))
    assert [row["covers"] for row in seen] == ["fills, not funding (no rows)", "fills, funding"]
    idle = [as_numbers(frame.iloc[:0], kind) for frame in (fills(), funding())]
    assert engine.take(attribution(*map(engine.give, idle)))[0]["funding"] == 0


def test_sources_without_group_column_are_named():
    by_coin = attribution(fills(), funding(), ledger(), by="coin", account=ME)
    assert set(by_coin[by_coin["coin"] != "ETH"]["covers"]) == {
        "fills, funding, not ledger (it has no coin)"
    }
    assert by_coin["ledger"].isna().all()
    by_side = attribution(fills(), funding(), by="side")
    assert set(by_side["covers"]) == {"fills, not funding (it has no side)"}
    assert by_side["funding"].isna().all()
    assert by_side["net"].sum() == pytest.approx(8.07)


def test_coin_with_only_funding_has_row():
    rows = attribution(fills(), funding(), by="coin").set_index("coin")
    assert list(rows.index) == ["@107", "BTC", "ETH", "PURR/USDC", "SOL", "flx:TSLA"]
    assert rows.loc["SOL", ["fills", "closed_pnl", "funding", "net"]].tolist() == [0, 0, 0.5, 0.5]
    assert rows["funding"].isna().sum() == 1
    assert pd.isna(rows.loc["ETH", "funding"])  # perps, held for how long these fills do not say
    assert rows.loc["@107", "funding"] == 0


def test_days_and_weeks_are_utc():
    days = attribution(fills(), by="day")
    assert list(days["day"]) == list(times(MONDAY + n * DAY for n in (0, 1, 7, 10)))
    weeks = attribution(fills(), by="week")
    assert list(weeks["week"]) == list(times([MONDAY, MONDAY + 7 * DAY]))
    assert days["day"].dtype == weeks["week"].dtype == "datetime64[ms, UTC]"


def test_groups_by_dex():
    assert list(attribution(fills(), by="dex")["dex"]) == ["flx", "hyperliquid", "spot"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", GROUPS, ids=str)
def test_groups_sum_to_total(kind, by):
    frames = [as_numbers(frame, kind) for frame in (fills(), funding(), ledger())]
    total = attribution(*frames, account=ME).iloc[0]
    rows = attribution(*frames, by=by, account=ME)
    for name in ("fills", "volume", *PARTS, "unpriced_fees"):
        assert float(rows[name].sum()) == pytest.approx(float(total[name]), abs=1e-12)
    for _, row in rows.iterrows():
        parts = [row[name] for name in (*PARTS, "funding") if not pd.isna(row[name])]
        assert float(row["net"]) == pytest.approx(float(sum(parts)), abs=1e-12)
        assert kind == "float" or row["net"] == sum(parts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", GROUPS, ids=str)
def test_engines_agree(engine, kind, by):
    frames = [as_numbers(frame, kind) for frame in (fills(), funding(), ledger())]
    expected = attribution(*frames, by=by, account=ME)
    given_ = [engine.give(frame) for frame in frames]
    seen = engine.take(attribution(*given_, by=by, account=ME))
    same_rows(seen, type(engine)("pandas").take(expected))


def same_rows(seen, expected):
    assert [list(row) for row in seen] == [list(row) for row in expected]
    for row, wanted in zip(seen, expected, strict=True):
        for name, value in wanted.items():
            if isinstance(value, float):
                assert row[name] == pytest.approx(value, abs=1e-9), name
            else:
                assert row[name] == value, name


@pytest.mark.parametrize("kind", KINDS)
def test_empty_sources_keep_dtypes(kind):
    frames = [as_numbers(frame, kind) for frame in (fills(), funding(), ledger())]
    full = attribution(*frames, by=["user", "day"], account=ME)
    for rows in (slice(0, 0), slice(0, 1)):
        few = attribution(*(f.iloc[rows] for f in frames), by=["user", "day"], account=ME)
        assert list(few.dtypes) == list(full.dtypes)
        assert list(few.columns) == list(full.columns)
    money = EXACT if kind == "exact" else "float64"
    assert {str(full[name].dtype) for name in (*PARTS, "net", "ledger")} == {str(money)}
    assert len(attribution(frames[0].iloc[:0], by="coin")) == 0
    nothing = one(attribution(*(f.iloc[:0] for f in frames), account=ME))
    assert nothing["fills"] == nothing["net"] == nothing["equity_change"] == 0


def test_input_order_does_not_matter():
    frame = exact(fills())
    shuffled = frame.sample(frac=1, random_state=3)
    shuffled.index = [0] * len(shuffled)
    before = shuffled.copy(deep=True)
    pd.testing.assert_frame_equal(attribution(frame, by="coin"), attribution(shuffled, by="coin"))
    pd.testing.assert_frame_equal(shuffled, before)


def test_each_repeated_row_counts():
    twice = pd.concat([fills(), fills()])
    assert attribution(twice)["fills"].item() == 14
    assert attribution(twice)["net"].item() == pytest.approx(2 * 8.07)


def test_absent_fee_columns_count_as_zero():
    bare = fills()[["coin", "px", "sz", "side", "time", "closed_pnl", "fee"]].head(2)
    row = attribution(bare).iloc[0]
    assert row["trading_fee"] == pytest.approx(-0.11)
    assert (row["builder_fee"], row["deployer_fee"], row["unpriced_fees"]) == (0, 0, 0)


def test_priority_gas_outside_net():
    frame = fills().head(2).assign(priority_gas=[0.25, NONE_GAS])
    row = attribution(frame).iloc[0]
    assert row["priority_gas"] == -0.25
    assert row["net"] == pytest.approx(9.89)


NONE_GAS = float("nan")


def test_errors_name_missing_columns():
    with pytest.raises(MissingColumns, match="fills: the frame lacks the columns px, fee"):
        attribution(fills().drop(columns=["px", "fee"]))
    with pytest.raises(MissingColumns, match="fills: the frame lacks the column builder"):
        attribution(fills(), by="builder")
    with pytest.raises(MissingColumns, match=r"lacks the column month. .* dex, hour, day, week$"):
        attribution(fills(), by="month")
    with pytest.raises(MissingColumns, match="funding: the frame lacks the column usdc"):
        attribution(fills(), funding().drop(columns="usdc"))
    with pytest.raises(MissingColumns, match="closed_pnl is String, not numbers"):
        attribution(fills().astype({"closed_pnl": "str"}))
    with pytest.raises(MissingColumns, match="funding: its numbers are float"):
        attribution(exact(fills()), funding())
    with pytest.raises(MissingColumns, match="ledger: the frame lacks the column account"):
        attribution(fills(), None, ledger(), by="user")


def test_transfers_need_known_account():
    """Named, in a column, by provenance, or unknown: then transfers are not counted as zero."""
    named = one(attribution(fills(), funding(), ledger(), account=ME))
    column = one(attribution(fills(), funding(), ledger().assign(account=ME)))
    fetched = ledger()
    fetched.attrs["toolkit"] = {"parameters": {"user": ME}}
    assert named == column == one(attribution(fills(), funding(), fetched))
    unknown = one(attribution(fills(), None, ledger()))
    assert (unknown["ledger"], unknown["unknown_flows"]) == (1000 - 51 - 5, 3)
    # Seen from the other side, the transfers change sign and the sender paid the fee.
    away = one(attribution(fills(), None, ledger(), account="0x" + "b" * 40))
    assert away["ledger"] == 1000 - 51 - 5 + 20 - 7


def test_ledger_is_split_by_user():
    rows = pd.concat([ledger().assign(account=ME), ledger().assign(account="0xother")])
    both = pd.concat([fills(), fills().tail(1).assign(user="0xother")])
    frame = attribution(both, None, rows, by="user").set_index("user")
    assert frame.loc[ME, "ledger"] == 930
    assert frame.loc["0xother", ["fills", "ledger", "unknown_flows"]].tolist() == [1, 944, 3]
    alone = attribution(fills(), None, rows, by="user")
    assert (alone["user"].tolist(), alone["ledger"].tolist()) == ([ME], [930])


@pytest.mark.parametrize("kind", KINDS)
def test_other_accounts_are_excluded(engine, kind):
    """A builder's funding has every account that approved it; fills need not repeat theirs."""
    paid = pd.concat([funding(), funding().assign(user=OTHER, usdc=1000.0)])
    moved = pd.concat([ledger().assign(account=ME), ledger().assign(account=OTHER)])
    frames = [engine.give(as_numbers(frame, kind)) for frame in (fills(), paid, moved)]
    nameless = engine.give(as_numbers(fills().drop(columns="user"), kind))
    for by in (None, "week", ["day", "dex"]):
        seen = [engine.take(attribution(nameless, *frames[1:], by=by, account=ME.upper()))]
        seen.append(engine.take(attribution(*frames, by=by)))
        for rows in seen:
            assert float(sum(row["funding"] or 0 for row in rows)) == -0.75
            assert float(sum(row["ledger"] or 0 for row in rows)) == (
                930 if "dex" not in (by or ()) else 0
            )
    (none,) = engine.take(attribution(nameless, frames[1], account="0xc"))
    assert none["covers"] == "fills, not funding (no rows)"
    for source, rows in (("funding", {"funding": frames[1]}), ("ledger", {"ledger": frames[2]})):
        with pytest.raises(ValueError, match=f"{source}: .* has rows of 2 accounts.*account="):
            attribution(nameless, **rows)


@pytest.mark.parametrize("user", [str, pd.ArrowDtype(pa.string()), object], ids=str)
def test_account_is_taken_from_provenance(user):
    """By what was asked of the service, unless rows of an answer for many are gone."""
    paid = pd.concat([funding(), funding().assign(user=OTHER)]).astype({"user": user})
    bare = fills().drop(columns="user")
    bare.attrs["toolkit"] = {"parameters": {"user": ME.upper()}, "rows": 999}
    assert attribution(bare, paid)["funding"].item() == -0.75
    many = {"parameters": {"users": [ME, OTHER]}, "rows": len(bare)}
    every = fills()
    every.attrs["toolkit"] = many
    assert attribution(every, paid)["funding"].item() == -1.5
    assert attribution(every[:-1], paid)["funding"].item() == -0.75
    by_user = attribution(exact(every.assign(user=ME.upper())), exact(paid), by="user")
    assert by_user["user"].tolist() == [ME, OTHER.lower()]
    assert by_user["funding"].tolist() == [Decimal("-0.75")] * 2


def test_funding_of_one_account_needs_no_fills():
    """Its user column is empty: one account's funding is its own, of several nobody knows."""
    none = fills().iloc[:0]
    assert attribution(none, funding())["funding"].item() == -0.75
    both = pd.concat([funding(), funding().assign(user=OTHER)])
    assert attribution(none, both, account=ME)["funding"].item() == -0.75
    with pytest.raises(ValueError, match="funding: the frame has rows of 2 accounts"):
        attribution(none, both)


def test_different_accounts_are_refused():
    frames = [fills().drop(columns="user"), ledger()]
    for frame, user in zip(frames, (ME, OTHER), strict=True):
        frame.attrs["toolkit"] = {"parameters": {"user": user}}
    with pytest.raises(
        ValueError, match=f"the ledger was fetched for {OTHER.lower()}, but the fills"
    ):
        attribution(frames[0], None, frames[1])
    assert attribution(frames[0], None, frames[1], account=ME)["ledger"].item() == 930


FLOWS = [
    ({"type": "vaultCreate", "usdc": 100.0, "fee": 2.0}, -102.0),
    ({"type": "vaultDeposit", "usdc": 100.0}, -100.0),
    ({"type": "vaultDistribution", "usdc": 3.0}, 3.0),
    ({"type": "vaultWithdraw", "requested_usd": 9.0, "net_withdrawn_usd": 8.0}, 8.0),
    ({"type": "vaultCreate", "usdc": 100.0, "fee": 2.0, "vault": ME}, 100.0),
    ({"type": "vaultDeposit", "usdc": 100.0, "vault": ME}, 100.0),
    ({"type": "vaultDeposit", "usdc": 100.0, "vault": OTHER}, -100.0),
    ({"type": "vaultDistribution", "usdc": 3.0, "vault": ME}, -3.0),
    ({"type": "vaultWithdraw", "net_withdrawn_usd": 8.0, "commission": 1.0, "vault": ME}, -9.0),
    ({"type": "vaultWithdraw", "net_withdrawn_usd": 8.0, "commission": 1.0, "vault": OTHER}, 8.0),
    ({"type": "vaultLeaderCommission", "usdc": 1.5, "user": ME}, 1.5),
    ({"type": "accountClassTransfer", "usdc": 4.0, "to_perp": True}, 4.0),
    ({"type": "perpDexClassTransfer", "token": "USDC", "amount": 4.0, "to_perp": False}, -4.0),
    ({"type": "spotTransfer", "token": "USDC", "amount": 4.0, "user": ME, "fee": 1.0}, 0.0),
    ({"type": "rewardsClaim", "token": "HYPE", "amount": 4.0}, 0.0),
    ({"type": "liquidation", "liquidated_ntl_pos": 4.0}, 0.0),
    ({"type": "borrowLendBackstopLiquidation"}, None),
    ({"type": "deposit"}, None),
    ({"type": "accountClassTransfer", "usdc": 4.0}, None),
]
SEND = {"type": "send", "token": "USDC", "amount": 10.0, "fee": 1.0, "fee_token": ""}
SENDS = [
    ({"user": ME, "destination": "0xb", "source_dex": "", "destination_dex": "spot"}, -11.0),
    ({"user": "0xb", "destination": ME, "source_dex": "spot", "destination_dex": "flx"}, 10.0),
    ({"user": ME, "destination": ME, "source_dex": "", "destination_dex": "flx"}, -1.0),
    ({"user": ME, "destination": ME, "source_dex": "spot", "destination_dex": ""}, 10.0),
    ({"user": ME, "destination": ME, "source_dex": "spot", "destination_dex": "spot"}, 0.0),
    ({"user": ME, "source_dex": "", "fee_token": "HYPE"}, -10.0),
    ({"user": ME, "source_dex": "", "token": "USDH", "usdc_value": 9.9, "fee": 0.0}, -9.9),
    ({"user": ME, "source_dex": "", "token": "USDH", "fee": 0.0}, None),
    ({"user": "0xb", "destination": "0xc"}, None),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("row", "flow"), [*FLOWS, *(({**SEND, **more}, flow) for more, flow in SENDS)]
)
def test_each_ledger_type_has_its_flow(kind, row, flow):
    frame = as_numbers(pd.DataFrame([{"time": times([MONDAY])[0], **row}]), kind)
    result = one(attribution(as_numbers(fills(), kind).head(1), None, frame, account=ME))
    assert result["ledger"] == (flow or 0)
    assert result["unknown_flows"] == (flow is None)


amounts = st.decimals(-1000, 1000, places=6, allow_nan=False)
trades = st.lists(
    st.tuples(st.sampled_from(["BTC", "ETH", "flx:X"]), amounts, amounts, amounts, amounts),
    min_size=1,
    max_size=20,
)


@given(trades)
def test_fee_parts_sum_to_fee(rows):
    frame = pd.DataFrame(
        rows, columns=["coin", "closed_pnl", "fee", "builder_fee", "deployer_fee"]
    ).assign(px=1.0, sz=1.0, side="B", time=times([MONDAY] * len(rows)))
    for name in ("px", "sz", "closed_pnl", "fee", "builder_fee", "deployer_fee"):
        frame[name] = pd.array([Decimal(str(v)) for v in frame[name]], dtype=EXACT)
    result = attribution(frame, by="coin")
    for _, row in result.iterrows():
        mine = [r for r in rows if r[0] == row["coin"]]
        fees = row["trading_fee"] + row["builder_fee"] + row["deployer_fee"] + row["rebate"]
        assert fees == -sum(r[2] for r in mine)
        assert row["net"] == sum(r[1] for r in mine) - sum(r[2] for r in mine)
        assert row["rebate"] >= 0 >= row["trading_fee"]


def test_million_fills_sum_to_net():
    rng = np.random.default_rng(5)
    n = 1_000_000
    frame = pd.DataFrame(
        {
            "coin": pd.array(rng.choice(["BTC", "ETH", "flx:TSLA"], n), dtype="str"),
            "px": rng.random(n),
            "sz": rng.random(n),
            "side": pd.array(rng.choice(["A", "B"], n), dtype="str"),
            "time": times(MONDAY + rng.integers(0, 30 * DAY, n)),
            "closed_pnl": rng.normal(size=n),
            "fee": rng.random(n),
        }
    )
    rows = attribution(frame, by=["coin", "day"])
    assert len(rows) == 90
    assert rows["net"].sum() == pytest.approx((frame["closed_pnl"] - frame["fee"]).sum())


def test_simulated_accounts_add_up(world, rows_of):
    """Closed PnL + funding - fees + ledger is the change of equity but for what is unrealised."""
    for user, truth in (world.expected | world.expected_mixed).items():
        parts = (
            rows_of(name, user)
            for name in (
                "userFillsByTime",
                "builderApprovedFundingByTime",
                "userNonFundingLedgerUpdates",
            )
        )
        row = attribution(*parts, account=user).iloc[0]
        assert row["equity_change"] == truth.equity_end - truth.equity_start - truth.unrealised
        assert row["funding"] == truth.funding
        assert row["ledger"] == truth.ledger
        if user in world.expected_mixed:
            continue  # spot stands apart there, and here in the same sums
        assert row["closed_pnl"] == truth.closed_pnl
        fees = row["trading_fee"] + row["builder_fee"] + row["deployer_fee"] + row["rebate"]
        assert fees == -truth.fees
        assert (row["unpriced_fees"], row["unknown_flows"]) == (0, 0)


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_payment_without_amount_is_not_summed(engine, kind):
    """-1 + 0.5 without the third one, which is not 0: it is not known."""
    paid = funding()
    paid.loc[2, "usdc"] = None
    given = engine.give(as_numbers(fills(), kind)), engine.give(as_numbers(paid, kind))
    row = engine.take(attribution(*given))[0]
    assert float(row["funding"]) == -0.5
    assert row["missing_amounts"] == 1
    assert engine.take(attribution(given[0]))[0]["missing_amounts"] == 0


def test_funding_without_account_is_refused(engine):
    """Of two accounts' fills, funding that names no account belongs to nobody knows whom."""
    two = fills()
    two["user"] = [ME] * 3 + [OTHER] * (len(two) - 3)
    paid = funding().drop(columns="user", errors="ignore")
    with pytest.raises(MissingColumns, match=r"funding: .* has no column user, and the fills are"):
        attribution(engine.give(two), engine.give(paid))
    one_account = engine.give(two.assign(user=ME))
    assert engine.take(attribution(one_account, engine.give(paid)))[0]["funding"] == -0.75


def test_funding_of_other_account_is_excluded(engine):
    mine, paid = fills().assign(user=ME), funding().assign(user=OTHER)
    row = engine.take(attribution(engine.give(mine), engine.give(paid)))[0]
    assert row["covers"] == "fills, not funding (no rows)"
    assert row["net"] == pytest.approx(8.07)
    assert row["funding"] is None or np.isnan(row["funding"])


@pytest.mark.parametrize("kind", KINDS)
def test_figures_without_any_amount_are_missing(engine, kind):
    """BTC alone lacks both: its figures are missing, those of ETH are not."""
    gone = fills()
    btc = gone["coin"] == "BTC"
    gone.loc[btc, ["closed_pnl", "fee"]] = np.nan
    with pytest.warns(MissingAmounts):
        result = attribution(engine.give(as_numbers(gone, kind)), by="coin")
    rows = {row["coin"]: row for row in engine.take(result)}
    lost = rows["BTC"]
    count = int(btc.sum())
    assert lost["covers"] == f"fills (0 of {count} closed PnLs, 0 of {count} fees known)"
    for name in ("closed_pnl", "trading_fee", "rebate", "net"):
        assert pd.isna(lost[name])
        assert not pd.isna(rows["ETH"][name])
    assert lost["fills"] == count
    assert rows["ETH"]["covers"] == "fills"


@pytest.mark.parametrize("kind", KINDS)
def test_nullable_group_keeps_type(kind):
    frame = as_numbers(fills(), kind)
    number = 2**53 + 1  # a float cannot hold it
    values = [number, None] * len(frame)
    frame["group"] = pd.array(values[: len(frame)], dtype="Int64")
    result = attribution(frame, by="group")
    assert result["group"].dtype == "Int64"
    assert result["group"].iloc[0] == number
    assert result["group"].isna().tolist() == [False, True]
    crossed = attribution(frame.astype({"crossed": "boolean"}), by="crossed")["crossed"]
    assert crossed.dtype == "boolean"


def test_unused_column_may_have_mixed_values():
    frame = fills()
    mixed = frame.assign(note=[{"a": 1} if n % 2 else "text" for n in range(len(frame))])
    pd.testing.assert_frame_equal(attribution(mixed), attribution(frame))
