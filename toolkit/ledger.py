"""Ledger updates: deposits, withdrawals and transfers, in USD and in tokens."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from toolkit.prepare.door import Frame, Names, Table, utc_times
from toolkit.prepare.groups import group_rows, list_keys, sum_groups
from toolkit.prepare.ledger import RULES, own_ledger, read_kept
from toolkit.prepare.money import CASH
from toolkit.prepare.provenance import finish

__all__ = ["flows", "sums", "unknown"]

MONEY = ("perp", "spot_usdc", "deposits", "withdrawals", "net_deposits", "income", "kept")
SUMS = ("updates", *MONEY, "unpriced", "unknown")


def flows(ledger: Frame, account: str | None = None) -> pd.DataFrame:
    """Return the movement of each ledger update: of the perp account and of the spot wallet.

    Parameters
    ----------
    ledger : DataFrame
        As `tk.user_non_funding_ledger_updates` returns it, or `tk.many` of it, which adds the
        column ``account``.
    account : str, optional
        The account of the ledger. If the ledger has several accounts, only rows of this one count.
        By default the column ``account``, or the address that the ledger was fetched for.

    Returns
    -------
    DataFrame
        One row per update in the given order, without repeats:

        - ``account`` text: the account; missing if it is not known
        - ``time``: the time of the update, UTC
        - ``type`` text: the type of the update
        - ``token`` text: the token that the spot wallet moves
        - ``perp``: amount into (+) or out of (-) the perp account, over all its dexes, in USD
        - ``spot``: amount into (+) or out of (-) the spot wallet, in units of the token
        - ``usd``: amount into the entire account, perp and spot together, in USD; 0 if money moved
          only between them; missing if the row states no price of the token
        - ``known`` bool: False if the type is unknown, or if the amount or the direction is
          missing. The amounts of such a row are missing, never 0

    Raises
    ------
    MissingColumns
        If ``time`` or ``type`` is missing, or if numbers are text.

    Notes
    -----
    A ``liquidation`` row moves nothing: the fills of the liquidation do. The fees of an update are
    included in the amount that leaves. A fee in USDC for moving another token is in ``usd``, not in
    ``spot``. The module `toolkit.prepare.ledger` has the rule of each type; docs/assumptions.md
    lists what it assumes.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"type": ["deposit", "accountClassTransfer", "liquidation", "new"],
    ...     "usdc": [100.0, 40.0, None, 7.0], "to_perp": [None, False, None, None],
    ...     "time": pd.to_datetime([0, 1, 2, 3], unit="ms", utc=True)})
    >>> flows(rows)[["type", "perp", "spot", "usd", "known"]]
                       type   perp  spot    usd  known
    0               deposit  100.0   0.0  100.0   True
    1  accountClassTransfer  -40.0  40.0    0.0   True
    2           liquidation    0.0   0.0    0.0   True
    3                   new    NaN   NaN    NaN  False
    """
    moves = own_ledger(Table(ledger, "ledger"), account)
    known = ~np.isnan(moves.perp + moves.spot)
    made = {
        "account": moves.account.texts(),
        "time": utc_times(moves.table.ms("time")),
        "type": moves.table.text("type").texts(),
        "token": moves.token.texts(),
        "perp": np.where(known, moves.perp, np.nan),
        "spot": np.where(known, moves.spot, np.nan),
        "usd": moves.usd,
        "known": known,
    }
    return finish(pd.DataFrame(made), {"ledger": moves.table.frame}, helper="ledger.flows")


def sums(
    ledger: Frame, by: str | Iterable[str] | None = ("type",), account: str | None = None
) -> pd.DataFrame:
    """Return sums of ledger updates, such as net deposits.

    Parameters
    ----------
    ledger, account
        See `flows`.
    by : str, list of str or None, default ("type",)
        One row per group: ``type``, ``account``, ``token``, ``hour``, ``day``, ``week`` (from
        Monday, UTC). None: one row.

    Returns
    -------
    DataFrame
        Sorted by group: the columns of `by`, then:

        - ``updates`` int64: number of updates
        - ``perp``: amount into the perp account less the amount out of it, in USD
        - ``spot_usdc``: USDC into the spot wallet less USDC out of it, in USD
        - ``deposits``: money from outside, in USD, at least 0
        - ``withdrawals``: money to the outside, in USD, at most 0
        - ``net_deposits``: ``deposits + withdrawals``, in USD
        - ``income``: rewards, commissions, and the gains of vaults when they are withdrawn, less
          gas, in USD
        - ``kept``: put into vaults, lent or staked, less what came back and less loans, in USD
        - ``unpriced`` int64: updates of tokens without a price in the row; no sum contains them
        - ``unknown`` int64: updates whose amount or direction is not known; no sum contains them

    Raises
    ------
    MissingColumns
        If a column is missing, or if numbers are text.
    ValueError
        If `by` names an aggregated column.

    Notes
    -----
    All movements together are ``net_deposits + income - kept``. Sums of groups add up to the total.
    Repeated rows count once. Rows without a hash cannot be identified, and all of them count.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"type": ["deposit", "withdraw", "new"], "usdc": [100.0, 40.0, 7.0],
    ...     "fee": [None, 1.0, None], "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True)})
    >>> sums(rows, by=None)[["updates", "deposits", "withdrawals", "net_deposits", "unknown"]]
       updates  deposits  withdrawals  net_deposits  unknown
    0        3     100.0        -41.0          59.0        1
    """
    keys = list_keys(by, ("time", "perp", "spot", "usd", "known", *SUMS))
    moves = own_ledger(Table(ledger, "ledger"), account)
    names = {"account": moves.account.texts().array, "token": moves.token.texts().array}
    codes, groups = group_rows(Table(moves.table.frame.assign(**names), "ledger", "none"), keys)
    count = len(groups)
    known, usd = ~np.isnan(moves.perp + moves.spot), moves.usd
    means, (kept, outside) = moves.means, read_kept(moves)
    price = np.divide(usd, moves.spot, where=moves.spot != 0, out=np.ones(len(usd)))
    price = np.where(means == "vault", 1.0, price)
    kept = np.where(kept == 0, 0.0, kept * price)
    outside = np.where(means == "outside", usd, np.where(outside == 0, 0.0, outside * price))
    spot = np.where(moves.token.facts(lambda name: name == "USDC"), moves.spot, 0.0)
    amounts = {
        "perp": moves.perp,
        "spot_usdc": spot - moves.cash_fee,
        "deposits": np.maximum(outside, 0.0),
        "withdrawals": np.minimum(outside, 0.0),
        "net_deposits": outside,
        "income": usd - outside + kept,
        "kept": kept,
    }
    counts = {"updates": known | True, "unpriced": known & np.isnan(usd), "unknown": ~known}
    made = {
        name: sum_groups(codes, np.where(known, np.nan_to_num(values), 0.0), count)
        for name, values in amounts.items()
    } | {name: sum_groups(codes, rows, count).astype(np.int64) for name, rows in counts.items()}
    result = groups.assign(**{name: made[name] for name in SUMS})
    return finish(result, {"ledger": moves.table.frame}, helper="ledger.sums", by=keys)


def unknown(ledger: Frame, account: str | None = None) -> pd.DataFrame:
    """Return the number of updates whose amount or direction is not known, by type.

    Parameters
    ----------
    ledger, account
        See `flows`.

    Returns
    -------
    DataFrame
        Sorted by type; empty if all updates are known:

        - ``type`` text: the type of the updates
        - ``reason`` text: ``"unknown type"``, ``"amount or direction missing"``, ``"price of the
          token missing"``, or ``"account not known"``, which `account` names
        - ``updates`` int64: number of updates
        - ``first``: time of the first update, UTC
        - ``last``: time of the last update, UTC

    Raises
    ------
    MissingColumns
        If ``time`` or ``type`` is missing, or if numbers are text.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"type": ["deposit", "new", "deposit"], "usdc": [100.0, 7.0, None],
    ...     "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True)})
    >>> unknown(rows)[["type", "reason", "updates"]]
          type                       reason  updates
    0  deposit  amount or direction missing        1
    1      new                 unknown type        1
    """
    moves = own_ledger(Table(ledger, "ledger"), account)
    table, types = moves.table, moves.types
    is_priced = moves.token.facts(lambda name: name in CASH)
    if table.has("usdc_value"):
        is_priced |= ~np.isnan(table.number("usdc_value"))
    # The wallet knows the amount and the direction, so only the price in USD can be missing.
    no_price = np.isnan(moves.perp) & ~np.isnan(moves.spot) & ~is_priced
    has_rule = types.facts(RULES.__contains__)
    sides = types.facts(lambda name: name in RULES and RULES[name].wallet in ("party", "send"))
    sides |= types.facts(lambda name: name in RULES and RULES[name].perp == "party")
    reasons = [
        *("unknown type", "amount or direction missing", "price of the token missing"),
        "account not known",
    ]
    codes = np.where(no_price, 2, np.where(sides & moves.account.facts("".__eq__), 3, 1))
    reason = Names(np.where(has_rule, codes, 0), reasons)
    rows = np.isnan(moves.perp + moves.spot)
    columns = {
        "type": types.texts(rows),
        "reason": reason.texts(rows),
        "time": utc_times(table.ms("time")[rows]),
    }
    times = pd.DataFrame(columns).groupby(["type", "reason"])["time"]
    made = times.agg(updates="count", first="min", last="max").reset_index()
    return finish(made, {"ledger": table.frame}, helper="ledger.unknown")


def __dir__() -> list[str]:
    return __all__
