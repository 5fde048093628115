"""Attribution: by hand, as identities, and on the simulated exchange."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from toolkit.errors import MissingAmounts, MissingColumns
from toolkit.pnl import attribution

from .examples import (
    DAY,
    HOUR,
    ME,
    MONDAY,
    OTHER,
    fills,
    funding,
    ledger,
    records,
    times,
    wrong_errors,
)
from .test_round_trips import listed_rows, mixed_fills, payments

GROUPS = (None, "coin", "dex", "user", "side", ["day", "user"], "week", ["crossed", "dir"])
PARTS = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate")
NAN = float("nan")


def one(result):
    (row,) = records(result)
    return {name: value for name, value in row.items() if value is not None}


def test_attribution_by_hand():
    """The builder fee is inside the fee; PURR's, 0.07 at 0.5, in its cost; HYPE's has no price."""
    total = one(attribution(fills(), funding(), ledger(), account=ME))
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


def test_uncovered_sources_are_missing():
    total = one(attribution(fills()))
    assert total["covers"] == "fills"
    assert {"funding", "ledger", "equity_change"}.isdisjoint(total)
    assert total["net"] == pytest.approx(8.07)
    nothing = one(attribution(fills()[:0], funding()[:0], ledger()[:0], account=ME))
    assert nothing["fills"] == nothing["net"] == nothing["equity_change"] == 0
    assert len(attribution(fills()[:0], by="coin")) == 0


def test_unpriced_fill_is_not_in_volume():
    for name in ("px", "sz"):
        gone = fills()
        wanted = (gone["px"] * gone["sz"])[1:].sum()
        gone.loc[0, name] = NAN
        with pytest.warns(MissingAmounts, match=f"of 7 rows, {name} is missing in 1"):
            row = one(attribution(gone))
        assert (row["missing_amounts"], row["volume"]) == (1, wanted)


def test_missing_amounts_are_counted():
    """BTC's 10 and HYPE's fee are gone: the sums lack them, and the row says so."""
    gone = fills()
    gone.loc[1, "closed_pnl"] = NAN
    gone.loc[6, "fee"] = NAN
    with pytest.warns(MissingAmounts, match="closed_pnl .* in 1 and fee .* in 1") as warned:
        row = one(attribution(gone))
    assert len(warned) == 1
    assert row["covers"] == "fills (6 of 7 closed PnLs, 6 of 7 fees known)"
    assert (row["missing_amounts"], row["unpriced_fees"]) == (2, 0)
    assert row["closed_pnl"] == pytest.approx(8 - 10)
    assert row["net"] == pytest.approx(8.07 - 10)


def test_parts_of_unknown_fee():
    """BTC's buy and TSLA lack their fee: their 0.01 and 0.05 are no rebates of 0.06."""
    gone = fills()
    gone.loc[[0, 2], "fee"] = NAN
    with pytest.warns(MissingAmounts, match="its parts builder_fee and deployer_fee"):
        rows = attribution(gone, by="coin").set_index("coin")
    btc, tsla = rows.loc["BTC"], rows.loc["flx:TSLA"]
    assert btc[[*PARTS[1:], "net"]].tolist() == pytest.approx([-0.05, -0.01, 0, 0, 10 - 0.06])
    assert btc["covers"] == "fills (2 of 2 closed PnLs, 1 of 2 fees known)"
    assert tsla[[*PARTS[1:], "fees_in_cost", "net"]].isna().all()
    assert tsla["closed_pnl"] == 0
    assert rows.loc["ETH", "rebate"] == pytest.approx(0.3)
    with pytest.warns(MissingAmounts, match="fee is missing in 2") as warned:
        row = one(attribution(gone.drop(columns=["builder_fee", "deployer_fee"])))
    assert "parts" not in str(warned[0].message)
    assert (row["rebate"], row["builder_fee"]) == (pytest.approx(0.3), 0)


def test_unrealised_is_change_between_positions():
    """Another account's 100 are not ours."""
    after = states((ME, "BTC", 7.0), (ME.upper(), "ETH", -2.0), (OTHER, "BTC", 100.0))
    assert one(attribution(fills(), positions=(None, after)))["unrealised"] == 5.0
    timed = after[:2].drop(columns="user").assign(time=times([MONDAY] * 2))
    assert one(attribution(fills(), positions=(None, timed)))["unrealised"] == 5.0
    split = attribution(fills(), by="side", positions=(None, after))
    assert split["unrealised"].isna().all()
    assert split["covers"].str.contains("not unrealised (it has no side)", regex=False).all()


def test_missing_unrealised_is_not_zero():
    """BTC has no value after, and ETH none before: only the change of flx:TSLA is known."""
    ends = (
        states((ME, "BTC", -5.0), (ME, "flx:TSLA", 1.0), (ME, "ETH", NAN)),
        states((ME, "BTC", NAN), (ME, "flx:TSLA", 4.0), (ME, "ETH", 2.0)),
    )
    coins = attribution(fills(), by="coin", positions=ends).set_index("coin")
    names = ["unrealised", "missing_amounts"]
    assert coins.loc[["flx:TSLA", "PURR/USDC"], names].values.tolist() == [[3, 0], [0, 0]]
    assert coins.loc[["BTC", "ETH"], "unrealised"].isna().all()
    whole = one(attribution(fills(), positions=ends))
    assert "unrealised" not in whole
    for row, count, noun in (
        (coins.loc["BTC"], 1, "position"),
        (coins.loc["ETH"], 1, "position"),
        (whole, 2, "positions"),
    ):
        assert row["missing_amounts"] == count
        assert row["covers"] == f"fills, unrealised, without the unrealised PnL of {count} {noun}"


def test_funding_without_rows_is_not_covered():
    """Nor is one account among others; rows of an account without fills do not count."""
    nothing = "fills, not funding (no rows)"
    seen = one(attribution(fills(), funding()[:0]))
    assert (seen["covers"], seen.get("funding")) == (nothing, None)
    others = funding().assign(user="0xother")
    for account in (None, ME):
        rows = attribution(fills(), others, by=["user"], account=account)
        assert rows[["user", "covers"]].values.tolist() == [[ME, nothing]]
        assert rows["funding"].isna().all()
        assert rows["net"].item() == pytest.approx(8.07)
    rows = attribution(fills(), others, by=["user"], account="0xOther")
    assert rows["covers"].tolist() == [nothing, "fills, funding"]
    assert one(attribution(fills()[:0], funding()[:0]))["funding"] == 0


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
    assert list(attribution(fills(), by="dex")["dex"]) == ["flx", "hyperliquid", "spot"]


def test_groups_sum_to_total():
    frames = (fills(), funding(), ledger())
    total = attribution(*frames, account=ME).iloc[0]
    for by in GROUPS:
        rows = attribution(*frames, by=by, account=ME)
        for name in ("fills", "volume", *PARTS, "unpriced_fees"):
            assert rows[name].sum() == pytest.approx(total[name], abs=1e-12), by
        parts = rows[[*PARTS, "funding"]].sum(axis=1)
        assert rows["net"].tolist() == pytest.approx(parts.tolist(), abs=1e-12), by


def test_absent_columns_count_as_zero():
    bare = fills()[["coin", "px", "sz", "side", "time", "closed_pnl", "fee"]].head(2)
    row = one(attribution(bare))
    assert row["trading_fee"] == pytest.approx(-0.11)
    assert (row["builder_fee"], row["deployer_fee"], row["unpriced_fees"]) == (0, 0, 0)
    row = one(attribution(bare.assign(priority_gas=[0.25, NAN])))
    assert (row["priority_gas"], row["net"]) == (-0.25, pytest.approx(9.89))


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


def test_other_accounts_are_excluded():
    """A builder's funding has every account that approved it; fills need not repeat theirs."""
    paid = pd.concat([funding(), funding().assign(user=OTHER, usdc=1000.0)])
    moved = pd.concat([ledger().assign(account=ME), ledger().assign(account=OTHER)])
    nameless = fills().drop(columns="user")
    for by in (None, "week", ["day", "dex"]):
        for rows in (
            attribution(nameless, paid, moved, by=by, account=ME.upper()),
            attribution(fills(), paid, moved, by=by),
        ):
            assert rows["funding"].sum() == -0.75
            assert rows["ledger"].sum() == (930 if "dex" not in (by or ()) else 0)
    none = one(attribution(nameless, paid, account="0xc"))
    assert none["covers"] == "fills, not funding (no rows)"


def test_account_is_taken_from_provenance():
    """By what was asked of the service, unless rows of an answer for many are gone."""
    paid = pd.concat([funding(), funding().assign(user=OTHER)])
    bare = fills().drop(columns="user")
    bare.attrs["toolkit"] = {"parameters": {"user": ME.upper()}, "rows": 999}
    assert attribution(bare, paid)["funding"].item() == -0.75
    many = {"parameters": {"users": [ME, OTHER]}, "rows": len(bare)}
    every = fills()
    every.attrs["toolkit"] = many
    assert attribution(every, paid)["funding"].item() == -1.5
    assert attribution(every[:-1], paid)["funding"].item() == -0.75
    by_user = attribution(every.assign(user=ME.upper()), paid, by="user")
    assert by_user["user"].tolist() == [ME, OTHER.lower()]
    assert by_user["funding"].tolist() == [-0.75] * 2


def test_funding_of_one_account_needs_no_fills():
    """Its user column is empty: one account's funding is its own."""
    none = fills()[:0]
    assert attribution(none, funding())["funding"].item() == -0.75
    both = pd.concat([funding(), funding().assign(user=OTHER)])
    assert attribution(none, both, account=ME)["funding"].item() == -0.75
    nameless = funding().drop(columns="user")
    assert attribution(fills(), nameless)["funding"].item() == -0.75


amounts = st.integers(-(10**9), 10**9).map(lambda micros: micros / 1e6)
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
    sums = frame.groupby("coin")[["closed_pnl", "fee"]].sum()
    result = attribution(frame, by="coin").set_index("coin")
    fees = result[list(PARTS[1:])].sum(axis=1)
    assert fees.tolist() == pytest.approx((-sums["fee"]).tolist(), abs=1e-6)
    wanted = sums["closed_pnl"] - sums["fee"]
    assert result["net"].tolist() == pytest.approx(wanted.tolist(), abs=1e-6)
    assert (result["rebate"] >= 0).all()
    assert (result["trading_fee"] <= 0).all()


def test_simulated_accounts_add_up(world, tables):
    """Closed PnL + funding - fees + ledger is the change of equity but for what is unrealised."""
    rows = attribution(tables.fills, tables.funding, tables.ledger, by="user").set_index("user")
    for user, truth in (world.expected | world.expected_mixed).items():
        row = rows.loc[user]
        change = truth.equity_end - truth.equity_start - truth.unrealised
        found = row[["equity_change", "funding", "ledger"]].tolist()
        wanted = [float(each) for each in (change, truth.funding, truth.ledger)]
        assert found == pytest.approx(wanted, abs=1e-6)
        if user in world.expected_mixed:
            continue  # spot stands apart there, and here in the same sums
        found = [row["closed_pnl"], row[list(PARTS[1:])].sum()]
        assert found == pytest.approx([float(truth.closed_pnl), -float(truth.fees)], abs=1e-6)
        assert (row["unpriced_fees"], row["unknown_flows"]) == (0, 0)


def test_nullable_group_keeps_type():
    frame = fills()
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


# Two accounts with collateral, outcome tokens, funding, ledger and positions.

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
MINE = [10, 2044.0, 11.125, -1.55625, -0.40625, -0.525, 0.9375, 52.75, 62.325, 97, 152.2, 13.5]
MINE += [-2, -1, 2.25, 1, 1, 1, 0]
THEIR = [8, 291, -3.25, -24.25, 0, 0, 0, 384.125, 356.625, 23, 375.875, -5, 0, 0, 0, 0, 0, 1, 1]
ELSE = [0, 0, 0, 0, 0, 0, 0, 1000, 1000, 4, 1004, 0, 0, 0, 0, 0, 0, 0, 0]
COINS = {
    "BTC": [4, 980, -11, -0.65625, -0.40625, 0, 0.9375, 0.25, -10.875, 12, -2, 0, 2.25, 1, 0, 0],
    "ETH": [3, 256, -8.75, -22.5, 0, 0, 0, 384.125, 352.875, -5, 0, 0, 0, 0, 0, 0],
    "flx:TSLA": [2, 1012.5, 14.625, -0.525, 0, -0.525, 0, 52.5, 66.075, 1.5, 0, 0, 0, 0, 0, 0],
    "#30": [1, 1, 1.5, 0, 0, 0, 0, 0, 1.5, 0, 0, 0, 0, 0, 1, 0],
    "@107": [3, 48.5, 6, -0.375, 0, 0, 0, 0, 5.625, 0, 0, -1, 0, 0, 0, 0],
    "@9": [2, 24, 3.5, -1, 0, 0, 0, 0, 2.5, 0, 0, 0, 0, 0, 0, 1],
}


def test_attribution_of_each_account():
    """The third account has no fills: it does not count, unless the fills were fetched for it."""
    frames, ends = (two_fills(), two_payments(), two_ledgers()), (BEFORE, AFTER)
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


def test_attribution_of_each_coin():
    """Collateral has its price in fills and in funding; swaps have no volume."""
    frames = (two_fills(), two_payments(), two_ledgers())
    result = attribution(*frames, by="coin", positions=(BEFORE, AFTER), prices=PRICES).set_index(
        "coin"
    )
    assert result["ledger"].isna().all()
    names = [n for n in NAMES if n not in ("ledger", "equity_change", "unknown_flows")]
    rows = dict(zip(result.index, listed_rows(result[names]), strict=True))
    for coin, wanted in COINS.items():
        assert rows[coin] == pytest.approx(wanted, abs=1e-9), coin


def test_hours_state_coverage_of_account():
    """An hour without a payment is unknown if the account misses one at any hour."""
    frames = (two_fills(), two_payments(), two_ledgers())
    rows = attribution(*frames, by=["user", "hour"], prices=PRICES)
    mine = rows[rows["user"] == ME]
    assert mine["funding"].fillna(0).tolist() == [0, 48.5, 2.5, -7, -0.25, 12, -3, 0]
    nothing = "fills, not funding (no rows), ledger"
    assert mine["covers"].tolist() == [
        nothing,
        *["fills, funding (6 of 9 position hours in all), ledger"] * 6,
        f"{nothing}, without 2 funding rows outside the time of the fills",
    ]
    names = ["funding", "equity_change"]
    assert mine[names].isna().all(axis=1).tolist() == [True, *[False] * 6, True]


def test_income_of_vaults_is_named():
    """500 of 600 USD that came back were put in before; a commission of 7 came on another day."""
    rows = {"type": ["deposit", "vaultDeposit", "vaultWithdraw", "vaultLeaderCommission"]}
    rows |= {
        "usdc": [900.0, 500.0, np.nan, 7.0],
        "net_withdrawn_usd": [np.nan] * 2 + [600.0, np.nan],
    }
    frame = pd.DataFrame({**rows, "vault": "0x" + "c" * 40, "basis": 500.0, "user": ME})
    frame["time"] = times([MONDAY, MONDAY, MONDAY, MONDAY + 24 * HOUR])
    made = attribution(fills().drop(columns="user"), ledger=frame, by="day", account=ME)
    named = [text.partition("without ")[2].split(" USD of vaults")[0] for text in made["covers"]]
    assert [text for text in named if text] == ["100.00", "7.00"]


def test_fills_without_named_users_take_the_account_that_is_known():
    """A column `user` that is empty names nobody: another column or the request does."""
    rows = two_fills().assign(account=lambda frame: frame["user"])
    wanted = attribution(two_fills(), by="user")["net"].tolist()
    for blank in (rows.assign(user=None), rows.assign(user=np.nan), rows.drop(columns="user")):
        assert attribution(blank, by="user")["net"].tolist() == wanted
    alone = fills().assign(user=pd.Series([None] * len(fills()), dtype="str"))
    assert attribution(alone, by="user", account=OTHER)["user"].tolist() == [OTHER.lower()]


def test_missing_group_is_last():
    """Perps without `dir` need no warning, because only outcome tokens are converted."""
    fills = two_fills().query("coin in ('BTC', 'ETH')")
    fills["fee_token"] = [None if coin == "BTC" else "USDC" for coin in fills["coin"]]
    fills["dir"] = pd.array([None] * len(fills), dtype="str")
    result = attribution(fills, by="fee_token")
    assert result["closed_pnl"].tolist() == [-8.75, -11]
    assert result["fee_token"].isna().tolist() == [False, True]


def test_errors_of_attribution():
    two = fills().assign(user=[ME] * 3 + [OTHER] * 4)
    nameless, bare = fills().drop(columns="user"), funding().drop(columns="user")
    both = pd.concat([funding(), funding().assign(user=OTHER)])
    mine, theirs = fills().drop(columns="user"), ledger()
    mine.attrs["toolkit"] = {"parameters": {"user": ME}}
    theirs.attrs["toolkit"] = {"parameters": {"user": OTHER}}
    texts = AFTER.astype({"unrealized_pnl": "str"})
    no_users = AFTER.drop(columns="user")
    table = [
        (lambda: attribution(fills(), by="builder"), MissingColumns, "column builder"),
        (lambda: attribution(fills(), by="month"), MissingColumns, "dex, hour, day, week"),
        (lambda: attribution(fills(), None, ledger(), by="user"), MissingColumns, "account"),
        (lambda: attribution(two, bare), MissingColumns, "funding: "),
        (lambda: attribution(fills(), bare, by="user"), MissingColumns, "column user"),
        (lambda: attribution(fills()[:0], both), ValueError, "funding: the frame has rows of 2"),
        (lambda: attribution(nameless, both), ValueError, "funding: the frame has rows of 2"),
        (lambda: attribution(nameless, None, two_ledgers()), ValueError, "ledger: the frame has"),
        (lambda: attribution(nameless, positions=(None, AFTER)), ValueError, "positions: "),
        (lambda: attribution(mine, None, theirs), ValueError, OTHER.lower()),
        (lambda: positioned(no_users, by="user"), MissingColumns, "column user"),
        (lambda: positioned(AFTER[["user", "coin"]]), MissingColumns, "unrealized_pnl"),
        (lambda: positioned(texts), MissingColumns, "unrealized_pnl is str"),
        (lambda: positioned(pd.concat([AFTER, BEFORE])), ValueError, "several rows"),
    ]
    assert wrong_errors(table) == []
    assert attribution(mine, None, theirs, account=ME)["ledger"].item() == 930


def positioned(after, **options):
    return attribution(fills(), positions=(None, after), **options)
