"""Ledger updates: what came, went and moved, in USD and in tokens, by type."""

from collections.abc import Iterable
from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, grouping, owners
from toolkit.analysis.common.columns import Frame, Numbers
from toolkit.analysis.common.fees import CASH
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.pnl.perp_flows import AMOUNTS, RULES, add_flows
from toolkit.analysis.pnl.wallet_flows import add_wallet

__all__ = ["flows", "sums", "unknown"]

NEEDED = ("time", "type")
FLOWS = ("account", "time", "type", "token", "perp", "spot", "usd", "known")
MONEY = ("perp", "spot_usdc", "deposits", "withdrawals", "net_deposits")
SUMS = ("updates", *MONEY, "unpriced", "unknown")


def flows(ledger: Any, account: str | None = None) -> Any:
    """Say of each ledger update what it moved: the perp account, the spot wallet, both.

    Parameters
    ----------
    ledger : DataFrame
        As `tk.user_non_funding_ledger_updates` gives it, or `tk.many` of it, which adds the
        column ``account`` (pandas, Polars eager or lazy, DuckDB relation; numbers float or exact).
    account : str, optional
        Whose ledger it is. Without it the column ``account``, or the address it was fetched for.

    Returns
    -------
    DataFrame
        Of the engine of `ledger`, one row an update in the order given, each once:

        - ``account`` text (missing where nobody said whose it is), ``time``, ``type``;
        - ``perp``: USD into (+) or out of (-) the perp account, over all its dexes;
        - ``token``, ``spot``: the token and the amount of it into (+) or out of (-) the spot
          wallet;
        - ``usd``: what came into the account as a whole, both pockets together: 0 where money
          only changed the pocket; missing where a token has no price in the row;
        - ``known`` bool: False for a type that nobody knows, a row that lacks its amount, or
          one whose direction cannot be told. Such a row's amounts are missing, never 0.

    Raises
    ------
    MissingColumns
        If ``time`` or ``type`` is missing, or numbers are text.

    Notes
    -----
    A ``liquidation`` row moves nothing: the fills of the liquidation do. What each type moves
    stands in the clarifications, "Ledger"; its fees are part of what leaves.

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
    rows, _ = _ledger_movements(ledger, account)
    return columns.result_from_frame(rows.select(*FLOWS), {"ledger": ledger}, helper="ledger.flows")


def sums(
    ledger: Any, by: str | Iterable[str] | None = ("type",), account: str | None = None
) -> Any:
    """Sum ledger updates: net deposits, and what is not in them.

    Parameters
    ----------
    ledger, account
        As `flows` takes them.
    by : str, list of str or None, default ("type",)
        One row for each group: ``type``, ``account``, ``token``, ``hour``, ``day``, ``week``
        (Monday, UTC). None: one row.

    Returns
    -------
    DataFrame
        Of the engine of `ledger`, sorted by the groups: the columns of `by`, then

        - ``updates`` int64;
        - ``perp``, ``spot_usdc``: USD into the perp account, USDC into the spot wallet;
        - ``deposits`` (at least 0), ``withdrawals`` (at most 0), ``net_deposits``: their sum,
          what came into the account as a whole, in USD;
        - ``unpriced`` int64: updates of tokens that have no price in the row, and ``unknown``
          int64: updates whose amount or direction cannot be told; neither is in any sum.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If `by` names what is measured.

    Notes
    -----
    For every group ``net_deposits = deposits + withdrawals``, and the groups add up to the whole.
    Rows given twice count once; rows without a hash cannot be told apart, and count each time.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"type": ["deposit", "withdraw", "new"], "usdc": [100.0, 40.0, 7.0],
    ...     "fee": [None, 1.0, None], "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True)})
    >>> sums(rows, by=None)[["updates", "deposits", "withdrawals", "net_deposits", "unknown"]]
       updates  deposits  withdrawals  net_deposits  unknown
    0        3     100.0        -41.0          59.0        1
    """
    keys = grouping.list_keys(by, ("time", "perp", "spot", "usd", "known", *SUMS))
    rows, kind = _ledger_movements(ledger, account)
    made = ("account", "token", *grouping.CALENDAR)
    columns.require_columns(rows, [key for key in keys if key not in made], "ledger")
    rows = grouping.add_calendar(rows, keys)
    nothing = columns.zero_literal(kind)
    usd, lost = nw.col("usd"), ~nw.col("known")
    amounts = {
        "perp": nw.col("perp"),
        "spot_usdc": nw.when(nw.col("token") == "USDC").then(nw.col("spot")).otherwise(nothing),
        "deposits": nw.when(usd > 0).then(usd).otherwise(nothing),
        "withdrawals": nw.when(usd < 0).then(usd).otherwise(nothing),
        "net_deposits": usd,
    }
    rows = rows.select(
        *keys,
        "time",
        **amounts,
        unpriced=_flag(~lost & usd.is_null()),
        unknown=_flag(lost),
    )
    result = _sum_movements(rows, keys, kind)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    return columns.result_from_frame(result, {"ledger": ledger}, helper="ledger.sums", by=keys)


def unknown(ledger: Any, account: str | None = None) -> Any:
    """Report the updates whose amount or direction cannot be told, by type.

    Parameters
    ----------
    ledger, account
        As `flows` takes them.

    Returns
    -------
    DataFrame
        Of the engine of `ledger`, sorted by type; empty where all is known:

        - ``type``, ``reason``: ``"unknown type"``, or ``"amount or direction missing"``;
        - ``updates`` int64; ``first``, ``last``: times, UTC.

    Raises
    ------
    MissingColumns
        If ``time`` or ``type`` is missing, or numbers are text.

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
    rows, _ = _ledger_movements(ledger, account)
    listed = nw.col("type").is_in(list(RULES))
    reason = (
        nw.when(listed)
        .then(nw.lit("amount or direction missing"))
        .otherwise(nw.lit("unknown type"))
    )
    rows = rows.filter(~nw.col("known")).select("type", "time", reason=reason)
    grouped = rows.group_by("type", "reason").agg(
        nw.col("time").count().alias("updates"),
        nw.col("time").min().alias("first"),
        nw.col("time").max().alias("last"),
    )
    result = grouped.select(
        "type", "reason", nw.col("updates").cast(nw.Int64()), "first", "last"
    ).sort("type", "reason")
    return columns.result_from_frame(result, {"ledger": ledger}, helper="ledger.unknown")


def _ledger_movements(ledger: Any, account: str | None) -> tuple[Frame, Numbers]:
    """Give each update what it moved, by `flows` and `wallets`."""
    ledger = count_once(ledger, "ledger")
    frame = columns.open_frame(ledger, "ledger")
    columns.require_columns(frame, NEEDED, "ledger")
    kind = columns.number_kind(frame, AMOUNTS, "ledger")
    whose = owners.account_names(ledger, account)
    has_account = "account" in frame.collect_schema().names()
    owner = whose[0] if len(whose) == 1 and (account is not None or not has_account) else None
    rows = add_wallet(add_flows(frame, kind, owner), kind)
    if owner is not None:
        name = nw.lit(owner)
    elif has_account:
        name = nw.col("account")
    else:
        name = nw.lit(None).cast(nw.String())
    known = ~(nw.col("flow").is_null() | nw.col("spot").is_null())
    gone = columns.missing_literal(kind)
    rows = rows.with_columns(account=name, known=known, _priced=_wallet_usd(kind))
    rows = rows.with_columns(
        perp=nw.when(known).then(nw.col("flow")).otherwise(gone).cast(columns.number_type(kind)),
        spot=nw.when(known).then(nw.col("spot")).otherwise(gone).cast(columns.number_type(kind)),
    )
    whole = (nw.col("perp") + nw.col("_priced")).cast(columns.number_type(kind))
    return rows.with_columns(usd=whole), kind


def _wallet_usd(kind: Numbers) -> nw.Expr:
    """Value what the wallet got in USD: USDC as it is, other tokens by the row's own value."""
    value = nw.col("usdc_value")
    return (
        nw.when(nw.col("spot") == 0)
        .then(columns.zero_literal(kind))
        .when(nw.col("token").is_in(CASH))
        .then(nw.col("spot"))
        .when(nw.col("spot") > 0)
        .then(value)
        .when(nw.col("spot") < 0)
        .then(-value)
        .otherwise(columns.missing_literal(kind))
    )


def _sum_movements(rows: Frame, keys: list[str], kind: Numbers) -> Frame:
    every = [
        nw.col("time").count().alias("updates"),
        *(nw.col(name).sum() for name in (*MONEY, "unpriced", "unknown")),
    ]
    made = rows.group_by(*keys).agg(*every) if keys else rows.select(*every)
    number = columns.number_type(kind)
    return made.select(
        *keys,
        nw.col("updates").cast(nw.Int64()),
        *(nw.col(name).fill_null(0).cast(number) for name in MONEY),
        *(nw.col(name).fill_null(0).cast(nw.Int64()) for name in ("unpriced", "unknown")),
    )


def _flag(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))
