"""Equity back from a stated value: by hand, and what it refuses."""

import pandas as pd
import pytest

from toolkit.errors import MissingColumns
from toolkit.pnl import carried_back

from .examples import HOUR, ME, MONDAY, OTHER, times, wrong_errors

HALF = HOUR // 2


def tables():
    """100 USD come at 0:30, 1 BTC is bought at 1:30 for 50, half of it sold at 2:30 for 60.

    At 3:15 the mark is 62, and the account is worth 100 - 0.2 + 5 + 0.5 * (62 - 50) = 110.8.
    """
    end = times([MONDAY + 3 * HOUR + HOUR // 4])
    held = {"szi": [0.5], "position_value": [31.0], "unrealized_pnl": [6.0]}
    amounts = {"px": [50.0, 60.0], "sz": [1.0, 0.5], "closed_pnl": [0.0, 5.0], "fee": [0.1, 0.1]}
    when = times([MONDAY + HOUR + HALF, MONDAY + 2 * HOUR + HALF])
    paid = {"coin": ["BTC"], "usdc": [0.0], "user": [ME], "time": times([MONDAY + 2 * HOUR])}
    moved = {"type": ["deposit"], "usdc": [100.0], "time": times([MONDAY + HALF])}
    return {
        "accounts": pd.DataFrame({"user": [ME], "account_value": [110.8], "time": end}),
        "positions": pd.DataFrame({"user": [ME], "coin": ["BTC"], **held}),
        "fills": pd.DataFrame({"coin": "BTC", "side": ["B", "A"], "time": when, **amounts}),
        "funding": pd.DataFrame(paid),
        "ledger": pd.DataFrame(moved),
    }


def made(**other):
    return carried_back(**{**tables(), **other})


def test_curve_by_hand():
    """Points at 0:30, 1, 2, 3 and 3:15; half a BTC at the sale's 60 has gained 5 by 3:00."""
    curve = made()
    assert curve["time"].dt.strftime("%H:%M").tolist() == [
        "00:30", "01:00", "02:00", "03:00", "03:15",
    ]  # fmt: skip
    wanted = {
        "flows": [0, 100, 100, 100, 100],
        "realised": [0, 0, -0.1, 4.8, 4.8],
        "unrealised": [0, 0, 0, 5, 6],
        "pnl": [0, 0, -0.1, 9.8, 10.8],
        "equity": [0, 100, 99.9, 109.8, 110.8],
    }
    for name, values in wanted.items():
        assert curve[name].astype("float64").tolist() == pytest.approx(values), name
    assert curve["covers"].unique().tolist() == ["fills, funding, ledger"]


#       coin   side  minute sz   px    closed fee
TRADES = [
    ("BTC", "A", 45, 1.0, 70.0, 0.0, 0.25), ("BTC", "A", 75, 1.0, 62.0, 0.0, 0.125),
    ("BTC", "B", 150, 0.5, 60.0, 3.0, 0.1), ("ETH", "B", 165, 2.0, 30.5, 0.0, 0.05),
    ("@107", "B", 100, 7.0, 4.0, 0.0, 0.5),
]  # fmt: skip


def test_curve_of_short_by_hand():
    """A short of 2 from 66, of which 0.5 close at 60, and 2 ETH; the other account changes nothing.

    Without the 1 USD of before, the value is 80 + 2.925 + 6 + 1 at the marks 62 and 31.
    """

    def at_minute(*minutes):
        return times([MONDAY + minute * HOUR // 60 for minute in minutes])

    names = ["coin", "side", "time", "sz", "px", "closed_pnl", "fee"]
    trades = pd.DataFrame(TRADES, columns=names)
    trades["time"] = at_minute(*trades["time"])
    paid = pd.DataFrame({"coin": "BTC", "usdc": [0.4, -0.15, 0.2]})
    moved = pd.DataFrame({"type": ["deposit", "withdraw"], "usdc": [100.0, 20.0]})
    paid["time"], moved["time"] = at_minute(60, 120, 180), at_minute(30, 130)
    held = {"coin": ["BTC", "ETH"], "szi": [-1.5, 2.0], "position_value": [93.0, 62.0]}
    state = pd.DataFrame({"account_value": [90.925], "time": at_minute(195)})
    frames = {
        "accounts": state,
        "positions": pd.DataFrame({**held, "unrealized_pnl": [6.0, 1.0]}),
        "fills": trades,
        "funding": paid,
        "ledger": moved,
    }
    both = {}
    for name, frame in frames.items():
        owner = "account" if name == "ledger" else "user"
        pair = [frame.assign(**{owner: OTHER}), frame.assign(**{owner: ME})]
        both[name] = pd.concat(pair, ignore_index=True)
    curve = carried_back(**both, account=ME)
    wanted = {
        "realised": [0, -0.25, 0.025, 2.725, 2.925],
        "flows": [0, 100, 100, 80, 80],
        "unrealised": [0, 0, 8, 9, 7],
        "equity": [1, 100.75, 109.025, 92.725, 90.925],
        "pnl": [0, -0.25, 8.025, 11.725, 9.925],
    }
    assert curve["time"].tolist() == at_minute(30, 60, 120, 180, 195).tolist()
    for name, values in wanted.items():
        assert curve[name].astype("float64").tolist() == pytest.approx(values), name


def test_funding_counts_until_state():
    """The state is of 5:15, so 0.5 at 4:00 counts (from 5:00), and 8 at 6:00 does not."""
    when = [MONDAY + hour * HOUR for hour in (2, 4, 6)]
    paid = pd.DataFrame({"coin": "BTC", "usdc": [0.0, 0.5, 8.0], "user": ME, "time": times(when)})
    state = tables()["accounts"].assign(time=times([MONDAY + 5 * HOUR + HOUR // 4]))
    curve = made(accounts=state, funding=paid)
    assert curve["realised"].tolist() == pytest.approx([0, 0, -0.1, 4.8, 4.8, 5.3, 5.3])
    assert curve["equity"].tolist() == pytest.approx([-0.5, 99.5, 99.4, 109.3, 109.3, 109.8, 110.8])


def test_payment_at_state_time_counts():
    """The state of 3:00 has the payment of 3:00."""
    paid = pd.DataFrame({"coin": "BTC", "usdc": [0.0, 0.5], "user": ME})
    paid["time"] = times([MONDAY + 2 * HOUR, MONDAY + 3 * HOUR])
    state = tables()["accounts"].assign(time=times([MONDAY + 3 * HOUR]))
    curve = made(accounts=state, funding=paid)
    assert curve["realised"].tolist() == pytest.approx([0, 0, -0.1, 5.3])
    assert curve["equity"].tolist() == pytest.approx([-0.5, 99.5, 99.4, 110.8])


def test_funding_before_first_fill_is_excluded():
    """4 USD at 1:00 are not of the BTC of 1:30; nothing else happened before."""
    paid = pd.DataFrame({"coin": "BTC", "usdc": [4.0, 0.5], "user": ME})
    curve = made(funding=paid.assign(time=times([MONDAY + HOUR, MONDAY + 2 * HOUR])))
    assert curve["realised"].tolist() == pytest.approx([0, 0, -0.1, 5.3, 5.3])
    assert curve["equity"].tolist() == pytest.approx([-0.5, 99.5, 99.4, 109.8, 110.8])
    words = "without 1 funding row outside the time of the fills"
    assert curve["covers"].unique().tolist() == [f"fills, funding, ledger, {words}"]


def test_position_without_fills_keeps_end_value():
    """2 ETH were held all the time; their price is not known before the end."""
    more = {"user": [ME], "coin": ["ETH"], "szi": [-2.0], "position_value": [40.0]}
    held = pd.concat([tables()["positions"], pd.DataFrame({**more, "unrealized_pnl": [3.0]})])
    state = tables()["accounts"].assign(account_value=113.8)
    curve = made(positions=held, accounts=state)
    assert curve["unrealised"].tolist() == pytest.approx([3, 3, 3, 8, 9])
    assert curve["equity"].tolist() == pytest.approx([3, 103, 102.9, 112.8, 113.8])


def test_curve_without_events_is_constant():
    none = {name: tables()[name].head(0) for name in ("fills", "funding", "ledger")}
    curve = made(**none)
    assert curve["time"].unique().tolist() == tables()["accounts"]["time"].tolist()
    assert set(curve["equity"]) == {110.8}
    assert set(curve["unrealised"]) == {6.0}


def test_state_that_lacks_the_wallet_is_refused():
    """With a value of 0 at the end the account would owe 110.8 USD before it held anything."""
    state = tables()["accounts"].assign(account_value=0.0)
    with pytest.raises(MissingColumns, match="account_value_snapshots"):
        made(accounts=state)


def test_period_begins_with_open_positions():
    curve = made(start_time=MONDAY + 2 * HOUR)
    assert curve["equity"].tolist() == pytest.approx([109.9, 109.8, 110.8])
    # Half of what is sold at 2:30 was bought before: 1 BTC, at the next price known, 60.
    assert curve["unrealised"].tolist() == pytest.approx([10, 5, 6])
    assert curve["pnl"].tolist() == pytest.approx([0, -0.1, 0.9])


def test_excluded_amounts_are_counted():
    fills = tables()["fills"].assign(fee_token=["USDC", "HYPE"])
    assert made(fills=fills)["covers"].iloc[0].endswith("without 1 fees in other tokens")
    paid = tables()["funding"].assign(usdc=float("nan"))
    words = "without 1 funding rows of unknown amount"
    assert made(funding=paid)["covers"].iloc[0].endswith(words)
    assert made(funding=None)["covers"].iloc[0] == "fills, ledger"


def test_account_of_state_is_chosen():
    both = {name: tables()[name] for name in ("accounts", "positions")}
    both = {name: pd.concat([item, item.assign(user=OTHER)]) for name, item in both.items()}
    assert made(**both, account=ME.upper().replace("X", "x"))["equity"].iloc[-1] == 110.8
    with pytest.raises(ValueError, match="account="):
        made(**both)


def test_time_of_state():
    """States of 2023 have no time at all; some frames have the column."""
    at, end = tables()["accounts"], MONDAY + 3 * HOUR + HOUR // 4
    for state in (at.drop(columns="time"), at.assign(time=pd.to_datetime([None], utc=True))):
        assert made(accounts=state, end_time=end).equals(made())
        with pytest.raises(MissingColumns, match="end_time="):
            made(accounts=state)


def test_errors_of_carried_back():
    given = tables()

    def unknown(name, column, value=None):
        known = given[name][column]
        rows = given[name].assign(**{column: known.where(known.index > 0, value)})
        return lambda: made(**{name: rows})

    table = [
        *((unknown("fills", name), f"fills: column {name} is missing in 1 of 2 rows")
          for name in ("px", "sz", "closed_pnl", "fee")),
        *((unknown(name, "time"), f"{name}: column time is missing in 1 ")
          for name in ("fills", "ledger")),
        (unknown("accounts", "account_value"), "account_value"),
        (unknown("positions", "unrealized_pnl"), "unrealized_pnl"),
        (lambda: made(fills=None), "fills is None"),
    ]  # fmt: skip
    assert wrong_errors((call, MissingColumns, named) for call, named in table) == []
    table = [
        (lambda: made(end_time=MONDAY + 2 * HOUR), "end_time"),
        (lambda: made(start_time=MONDAY + 4 * HOUR), "earlier start_time"),
    ]
    assert wrong_errors((call, ValueError, named) for call, named in table) == []
    assert made(accounts=given["accounts"].head(0)).empty
