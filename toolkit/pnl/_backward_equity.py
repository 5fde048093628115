"""Equity before a known state of an account, computed backwards from fills, funding and ledger."""

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.contract.dexes import NOT_PERP
from toolkit.errors import MissingColumns
from toolkit.pnl._attribution import compute_attribution
from toolkit.pnl._equity import curve_coverage
from toolkit.pnl._reconcile import select_rows
from toolkit.prepare import Fills
from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.prepare.funding import covered_period, is_inside
from toolkit.prepare.provenance import finish
from toolkit.prepare.states import distinct_rows, read_values
from toolkit.prepare.trades import read_signs
from toolkit.times import HOUR, Time, to_iso, to_ms

STATED = ("szi", "position_value", "unrealized_pnl")
_LONG_AGO = -(2**62)
_LACKING = 0.1  # share of the change that missing rows, such as funding, may explain
_LACKS_WALLET = (
    "accounts: {user} has unified or portfolio margin: its collateral is in the spot wallet, which "
    "its state does not have. Pass its values of tk.account_value_snapshots, with a column time"
)


def carried_back(
    accounts: Frame,
    positions: Frame,
    fills: Frame,
    funding: Frame | None,
    ledger: Frame | None,
    *,
    start_time: Time | None = None,
    end_time: Time | None = None,
    account: str | None = None,
) -> pd.DataFrame:
    """Return a perp account's equity over time, computed backwards from a state of the account.

    `equity` starts at an empty account and requires its entire history. This function starts at the
    end, with the value of the account, and removes the changes before it one after the other. So
    any time range works.

    Parameters
    ----------
    accounts, positions : DataFrame
        The state of one account at the end: ``.accounts`` and ``.positions`` of
        `tk.batch_clearinghouse_states`, of all dexes.
    fills, funding, ledger : DataFrame
        All rows of the account in the time range, up to the time of the state, see
        `tk.pnl.attribution`. Spot and outcome fills do not count. Funding before the fills does not
        count, and `covers` states this. If funding is None, it is not removed, and `covers` states
        this.
    start_time : int, str or datetime, optional
        The start of the curve; by default the first fill, payment or flow.
    end_time : int, str or datetime, optional
        The time of the state, if it has no column ``time``.
    account : str, optional
        The account, if the state has several.

    Returns
    -------
    DataFrame
        One row at the start, at each full hour (UTC) and at the end.
        Amounts are in USD, positive for a gain. No rows if `accounts` has none.

        - ``time``: the time of the point, UTC
        - ``realised``: closed PnL, fees and funding since the start, in USD
        - ``unrealised``: unrealised PnL of the open positions, in USD. A coin is valued at the
          price of the account's last fill in it, and before the first fill at the price of the
          first fill. The last point has the stated value
        - ``pnl``: change of the equity since the start, in USD, without flows
        - ``flows``: ledger flows into the perp account since the start, in USD
        - ``equity``: equity of the perp account, in USD; the last value is the stated one
        - ``covers`` text: the sources that are covered, see `tk.pnl.attribution`. It also states
          the number of fees in other tokens, and of flows and funding rows of unknown amount,
          which are not removed

    Raises
    ------
    MissingColumns
        If a column is missing or contains text; if an amount of the state or of a perp fill is
        missing; if the time of the state is not known.
    ValueError
        If the state has several accounts and `account` is missing; if its time differs from
        `end_time` or is before `start_time`.

    Notes
    -----
    The identity is the same as in `reconcile`: between two points the equity changes by realised
    PnL, the change of unrealised PnL, and flows. If the tables are the entire history of an
    account, the first equity is the residual of a reconciliation from an empty account. The spot
    wallet of unified and portfolio-margin accounts is not included. Repeated rows count once.
    Frames are read into memory.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> state = tk.batch_clearinghouse_states([tk.example.WHALE])
    >>> fills = tk.user_fills_by_time(tk.example.WHALE, "1d")
    >>> ledger = tk.user_non_funding_ledger_updates(tk.example.WHALE, "1d")
    >>> curve = carried_back(state.accounts, state.positions, fills, None, ledger)
    >>> bool(curve["equity"].iloc[-1] == state.accounts["account_value"].sum())
    True
    """
    if fills is None:
        raise MissingColumns(
            "fills is None. A curve needs all fills between its start and the time of the state. "
            "Fetch them; if there are none, pass a frame without rows"
        )
    states, stated = Table(accounts, "accounts"), Table(positions, "positions")
    stated.require(("user", "coin", *STATED))
    stated.require_values(STATED)
    held = stated.frame.assign(**{name: stated.number(name) for name in STATED})
    given = {"fills": fills, "funding": funding, "ledger": ledger}
    tables = {what: Table(frame, what) for what, frame in given.items() if frame is not None}
    worth, _ = read_values((states.frame, stated.frame), "accounts")
    states.require_values(["account_value"])
    if account is None and len(worth) > 1:
        raise ValueError(f"accounts: the frame has {len(worth)} accounts. Pass account=")
    name = next(iter(worth.index), "") if account is None else account.lower()
    user = name if name in worth.index else ""
    begin, end = (None if time is None else to_ms(time) for time in (start_time, end_time))
    if user and np.isnan(worth["value"][user]):
        raise MissingColumns(_LACKS_WALLET.format(user=user))
    held = distinct_rows(held, ("user", "coin"), "positions")
    end = _state_time(int(worth["ms"][user]), end, begin) if user else 0
    bounds = {user: (_LONG_AGO if begin is None else begin - 1, end)} if user else {}
    period = covered_period(tables["fills"], begin, end)
    rows = {what: select_rows(table, bounds, user) for what, table in tables.items()}
    is_spot = rows["fills"]["coin"].str.contains(NOT_PERP, na=False).astype(bool)
    traded, payments, flowed = rows["fills"][~is_spot], rows.get("funding"), rows.get("ledger")
    whole = compute_attribution(traded, payments, flowed, None, period)
    if payments is not None:
        payments = payments[is_inside(Table(payments, "funding"), Fills(traded), period)]
    hours = compute_attribution(traded, payments, flowed, "hour")
    perps = Table(traded, "fills", "none")
    perps.require_values(("px", "sz", "closed_pnl", "fee"))
    times, realised, flows, gain, equity = np.zeros((5, 0))
    if user:
        frames = [perps.frame, *(each for each in (payments, flowed) if each is not None)]
        moments = [Table(each, "rows", "none").ms() for each in frames]
        first = int(np.concatenate(moments).min(initial=end)) if begin is None else begin
        times = np.append(first, np.append(np.arange(first // HOUR * HOUR + HOUR, end, HOUR), end))
        # The last point contains what happened in the millisecond of the state.
        until = np.append(times[:-1], end + 1)
        until[0] = _LONG_AGO
        gain = _unrealised_before(held[held["user"].str.lower() == user], perps, until)
        place = np.searchsorted(Table(hours, "hours", "none").ms("hour"), until)
        realised, flows = (
            np.append(0.0, np.cumsum(np.nan_to_num(hours[name].to_numpy(np.float64))))[place]
            for name in ("net", "ledger")
        )
        change = realised + flows + gain
        equity = worth["value"][user] + (change - change[-1])
        # Nobody owes money without a position.
        if (equity[gain == 0] < -_LACKING * np.abs(change).max()).any():
            raise MissingColumns(_LACKS_WALLET.format(user=user))
    text = curve_coverage(whole["covers"].iloc[0], whole.iloc[0].to_dict())
    made = {
        "time": utc_times(times),
        "realised": realised,
        "unrealised": gain,
        "pnl": equity - equity[:1] - flows,
        "flows": flows,
        "equity": equity,
        "covers": pd.Series(text, range(len(times)), dtype="str"),
    }
    used = {"accounts": states, "positions": stated, **tables}
    inputs = {what: table.frame for what, table in used.items()}
    return finish(pd.DataFrame(made), inputs, helper="pnl.carried_back")


def _state_time(stated: int, given: int | None, start: int | None) -> int:
    """Return the time of the state, at which the tables end.

    Raise ValueError if the caller passed another end: movements between the two would be lost.
    """
    is_stated = stated != NO_TIME
    if not is_stated and given is None:
        raise MissingColumns(
            "accounts: the column time is missing, so the time of the state is unknown. Pass "
            "end_time="
        )
    if is_stated and given not in (None, stated):
        raise ValueError(
            f"accounts: the state is from {to_iso(stated)}, but end_time is {to_iso(given or 0)}. "
            "A curve ends at the time of its state. Fetch fills, funding and ledger up to "
            f"{to_iso(stated)}, and leave out end_time"
        )
    end = stated if given is None else given
    if start is not None and start > end:
        raise ValueError(
            f"start_time is {to_iso(start)}, after the time of the state, {to_iso(end)}. Pass an "
            "earlier start_time"
        )
    return end


def _unrealised_before(held: pd.DataFrame, perps: Table, until: Ints) -> Floats:
    """Return the unrealised PnL before each time: after the fills so far, at their last price.

    - ``held``: the stated positions at the end
    - ``perps``: all fills before it

    Before the first fill of a coin, its price is that of this fill. The last time is that of the
    state, which states it.
    """
    signed, px = perps.number("sz") * read_signs(perps.text("side")), perps.number("px")
    columns = {"px": px, "size": signed, "cost": signed * px + perps.number("closed_pnl")}
    fills = pd.DataFrame({"coin": perps.text("coin").texts(), "ms": perps.ms(), **columns})
    states = dict(zip(held["coin"], held[[*STATED]].to_numpy(), strict=True))
    still = held.loc[~held["coin"].isin(fills["coin"]), "unrealized_pnl"].sum()
    gain = np.full(len(until), still)
    for coin, rows in fills.sort_values("ms", kind="stable").groupby("coin"):
        size, notional, profit = states.get(coin, (0.0, 0.0, 0.0))
        # From the end backwards: sizes have up to eight decimals.
        moved, spent = (
            np.append(rows[name].to_numpy()[::-1].cumsum()[::-1], 0.0) for name in ("size", "cost")
        )
        sizes, costs = np.round(size - moved, 9), np.sign(size) * notional - profit - spent
        prices = np.append(rows["px"].iloc[0], rows["px"])
        # A closed position may have a small remainder: the exchange rounds closed PnL.
        profits = np.where(sizes != 0, sizes * prices - costs, 0.0)
        gain += profits[np.searchsorted(rows["ms"], until)]
    gain[-1] = held["unrealized_pnl"].sum()
    return gain
