"""Vaults: the value of a share over time, and what each depositor gained."""

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.provenance import account_names, finish, present_ms
from toolkit.statistics import scipy_part
from toolkit.times import DAY, Time

_DUST = 1e-6  # the last digit of an amount in USD
_MOST_FOLLOWERS = 100  # of one answer
_PAID_IN = ["vaultCreate", "vaultDeposit"]
_PAID_OUT = ["vaultDistribution", "vaultWithdraw"]
"""Types of ledger rows of a vault."""


def vault_shares(portfolio: Frame, period: str = "allTime") -> pd.DataFrame:
    """Compute the value of a share of a vault over time, without the effect of deposits.

    Between two neighbouring points the return is the PnL as a share of the capital, and a share,
    worth 1 USD at the first point, grows by it: ``growth = product(1 + return_)``. So deposits and
    withdrawals have no effect (time-weighted return).

    Parameters
    ----------
    portfolio : DataFrame
        History of `tk.vault_details`: ``period, time, account_value, pnl``. A point counts once.
    period : str, default "allTime"
        The history to use: ``day``, ``week``, ``month`` or ``allTime``. A shorter one has its
        points closer together.

    Returns
    -------
    DataFrame
        One row per point, oldest first. `tk.plots.growth_curve` draws it, and
        `tk.performance.returns` takes it as a curve, for `tk.performance.sheet`:

        - ``time``: time of the point, UTC
        - ``equity`` float64: account value of the vault, in USD
        - ``flows`` float64: deposits less withdrawals so far, in USD: ``equity - pnl``
        - ``pnl`` float64: PnL so far, in USD, positive for a gain
        - ``return_`` float64: return since the point before; missing without capital
        - ``growth`` float64: value of a share in USD, 1 at the first point with capital, missing
          before it
        - ``drawdown`` float64: value of a share as a share of its highest value so far, less 1;
          at most 0

    Raises
    ------
    ValueError
        If the portfolio does not have this period.
    MissingColumns
        If a column is missing.

    Notes
    -----
    The PnL of the vault is after fees and funding, and before the commission of its leader, which
    a depositor pays on withdrawal. The history does not state when between two points a deposit
    came: it counts from the point before it on, and a withdrawal until the point after it. Time-
    weighted return: GIPS standards, "Calculation methodology".

    Examples
    --------
    A gain of 10 on 100; a deposit of 100; a loss of 21 on 210:

    >>> import pandas as pd
    >>> portfolio = pd.DataFrame({"period": "allTime",
    ...     "time": pd.date_range("2025-09-01", periods=4, tz="UTC"),
    ...     "account_value": [100.0, 110.0, 210.0, 189.0], "pnl": [0.0, 10.0, 10.0, -11.0]})
    >>> vault_shares(portfolio)[["flows", "growth", "drawdown"]].round(4).values.tolist()
    [[100.0, 1.0, 0.0], [100.0, 1.1, 0.0], [200.0, 1.1, 0.0], [200.0, 0.99, -0.1]]
    """
    table = Table(portfolio, "portfolio")
    table.require(("period", "time", "account_value", "pnl"))
    periods = table.text("period")
    if len(table) and period not in periods.values:
        known = ", ".join(map(repr, periods.values))
        raise ValueError(f"portfolio has no period {period!r}; it has {known}")
    ms = table.known_ms()
    chosen = np.flatnonzero(periods.facts(lambda value: value == period))
    chosen = chosen[np.unique(ms[chosen], return_index=True)[1]]
    equity, pnl = (table.number(name)[chosen] for name in ("account_value", "pnl"))
    gain, flows = np.diff(pnl, prepend=pnl[:1]), equity - pnl
    moved = np.diff(flows, prepend=flows[:1])
    capital = np.append(np.nan, equity[:-1]) + np.maximum(moved, 0.0)
    is_funded = capital > _DUST
    returned = np.divide(gain, capital, out=np.full(len(gain), np.nan), where=is_funded)
    growth = np.cumprod(np.maximum(0.0, 1 + np.nan_to_num(returned)))
    begun = np.logical_or.accumulate((equity > _DUST) | is_funded)
    growth = np.where(begun, growth, np.nan)
    columns = {
        "time": utc_times(ms[chosen]),
        "equity": equity,
        "flows": flows,
        "pnl": pnl,
        "return_": returned,
        "growth": growth,
        "drawdown": growth / np.maximum.accumulate(np.where(begun, growth, 0.0)) - 1,
    }
    inputs, facts = {"portfolio": table.frame}, {"helper": "performance.vault_shares"}
    return finish(pd.DataFrame(columns), inputs, **facts, period=period)


def vault_depositors(
    ledger: Frame,
    followers: Frame,
    vault: Frame,
    *,
    account: str | None = None,
    at: Time | None = None,
) -> pd.DataFrame:
    """Compute what each depositor of a vault gained, and its money-weighted return.

    The return is the constant one over the whole holding time with which the deposits and
    withdrawals, each from its own time on, become the equity now.

    Parameters
    ----------
    ledger : DataFrame
        Ledger updates of depositors: of one account, or of several by `tk.many`, with a column
        ``account``. The ledger of the vault itself does not name its depositors.
    followers, vault : DataFrame
        The followers and the row of the vault, as `tk.vault_details` returns them.
    account : str, optional
        The account of the ledger; by default the one that it was fetched for.
    at : int, datetime or text, optional
        The time of the equity; by default the time at which `followers` was fetched.

    Returns
    -------
    DataFrame
        One row per depositor, the largest gain first:

        - ``user``: address of the account
        - ``first``: time of its first deposit, UTC
        - ``days`` float64: days from then until now, or until the last withdrawal if nothing
          is left
        - ``deposited`` float64: amount paid in, in USD
        - ``withdrawn`` float64: amount paid out, after the commission of the leader, in USD
        - ``equity`` float64: equity in the vault now, in USD; missing if it is not known
        - ``gain`` float64: ``equity + withdrawn - deposited``, in USD, positive for a profit
        - ``return_`` float64: money-weighted return over these days; missing if the equity is, or
          if no return or more than one fits

    Raises
    ------
    ValueError
        If nothing names the account of the ledger, or the time.
    MissingColumns
        If a column is missing.

    Warns
    -----
    HistoryWarning
        If the equity of a depositor is not known: an answer lists at most 100 followers. Pass the
        account as `user` to `tk.vault_details`.

    Notes
    -----
    Internal rate of return: with amounts ``a_k`` at times ``t_k`` (positive if paid in), the first
    one at ``t_0``, equity ``E`` at ``T``, and ``h = T - t_0``, it is the ``r`` with
    ``sum(a_k * (1 + r) ** ((T - t_k) / h)) = E``. Commissions that a leader receives do not name
    the vault and are not part of it.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> vault, _, followers = tk.vault_details(session.world["examples"]["VAULT"])
    >>> users = followers["user"].iloc[1:].tolist()  # the first one is the leader
    >>> ledger = tk.many(tk.user_non_funding_ledger_updates, users)
    >>> vault_depositors(ledger, followers, vault)["gain"].round(2).tolist()
    [59.3, 59.3, -9.41, -9.41]
    """
    about, listed = Table(vault, "vault"), Table(followers, "followers")
    table = Table(ledger, "ledger")
    about.require(("vault_address", "leader"))
    listed.require(("user", "vault_equity"))
    table.require(("type", "time", "vault", "usdc"))
    names = [] if table.has("account") else account_names(table.frame, account)
    if not table.has("account") and len(names) != 1:
        raise ValueError("ledger: nothing names its account. Pass account=")
    end = present_ms(listed.frame, at, "followers")
    address, leader = (
        "".join(about.text(name).texts()[:1].str.lower()) for name in ("vault_address", "leader")
    )
    amounts = ("usdc", "net_withdrawn_usd")
    rows = table.columns(("type", "vault", "usdc"), ("account", amounts[1]), amounts)
    rows = rows.assign(ms=table.known_ms(), user=names[0] if names else rows.get("account"))
    if amounts[1] not in rows:
        rows[amounts[1]] = np.nan
    rows = rows[(rows["vault"] == address) & rows["type"].isin(_PAID_IN + _PAID_OUT)]
    # A withdrawal states what it paid out in a column of its own.
    amount = rows["usdc"].mask(rows["type"] == "vaultWithdraw", rows["net_withdrawn_usd"])
    rows = rows.assign(amount=amount.where(rows["type"].isin(_PAID_IN), -amount))
    users = listed.text("user").texts().str.lower()
    stated = dict(zip(users, listed.number("vault_equity"), strict=True))
    missing = 0.0 if len(listed) < _MOST_FOLLOWERS else np.nan
    stated[leader] = stated.pop("leader", stated.get(leader, missing))
    if about.has("follower_user") and not about.is_blank("follower_user"):
        asked = about.text("follower_user").texts()[0].lower()
        stated[asked] = about.number("follower_vault_equity")[0]
    made = [
        (user, *_depositor(own, stated.get(str(user), missing), end))
        for user, own in rows.groupby("user", sort=True)
    ]
    columns = ["user", "first", "days", "deposited", "withdrawn", "equity", "gain", "return_"]
    result = pd.DataFrame(made, columns=columns)
    result = result.astype(dict.fromkeys(columns[1:], "float64") | {"user": "str"})
    result["first"] = utc_times(result["first"].to_numpy())
    if unknown := int(result["equity"].isna().sum()):
        warn_caller(
            f"followers: the equity of {unknown} of {len(result)} depositors is not known. The "
            f"answer lists {_MOST_FOLLOWERS} followers: pass the account as user to "
            "tk.vault_details",
            HistoryWarning,
        )
    result = result.sort_values("gain", ascending=False, kind="stable")
    inputs = {"ledger": table.frame, "followers": listed.frame, "vault": about.frame}
    return finish(result, inputs, helper="performance.vault_depositors", vault=address)


def _depositor(rows: pd.DataFrame, equity: float, end: int) -> tuple[float, ...]:
    """Return first time, days, deposited, withdrawn, equity, gain and return of one account."""
    amounts, ms = rows["amount"].to_numpy(), rows["ms"].to_numpy(np.int64)
    first, last = int(ms.min()), int(ms.max()) if abs(equity) <= _DUST else end
    deposited, withdrawn = amounts[amounts > 0].sum(), abs(amounts[amounts < 0].sum())
    gain, rate = equity - float(amounts.sum()), np.nan
    powers = (last - ms) / (last - first if last > first else np.nan)
    grid = np.linspace(-10.0, 10.0, 401)  # from -99.995 % to a factor of 22,000

    def miss(log: Floats | float) -> Floats:
        return np.asarray(np.exp(np.multiply.outer(log, powers)) @ amounts - equity)

    (changes,) = np.nonzero(np.diff(miss(grid) > 0))
    if len(changes) == 1:
        ends = grid[changes[0]], grid[changes[0] + 1]
        rate = float(np.expm1(scipy_part("optimize").brentq(miss, *ends, xtol=1e-14)))
    return first, (last - first) / DAY, deposited, withdrawn, equity, gain, rate
