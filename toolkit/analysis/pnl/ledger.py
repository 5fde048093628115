"""Ledger updates: movements of the perp account and the spot wallet, in USD and in tokens."""

from collections.abc import Iterable
from typing import Any

import narwhals as nw
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import frame_access, grouping, row_owners
from toolkit.analysis.common.frame_access import Frame, NumberKind
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.usd_values import CASH
from toolkit.analysis.pnl.perp_flows import AMOUNTS, RULES, add_perp_flows
from toolkit.analysis.pnl.wallet_flows import add_wallet_flows

NEEDED = ("time", "type")
FLOWS = ("account", "time", "type", "token", "perp", "spot", "usd", "known")
MONEY = ("perp", "spot_usdc", "deposits", "withdrawals", "net_deposits")
SUMS = ("updates", *MONEY, "unpriced", "unknown")


def flows(ledger: IntoFrameT, account: str | None = None) -> IntoFrameT:
    """Return the movement of each ledger update: of the perp account and of the spot wallet.

    Parameters
    ----------
    ledger : DataFrame
        As `tk.user_non_funding_ledger_updates` returns it, or `tk.many` of it, which adds the
        column ``account`` (pandas, Polars, DuckDB, PySpark; numbers float or exact).
    account : str, optional
        The account of the ledger. If the ledger has several accounts, only rows of this one count.
        By default the column ``account``, or the address that the ledger was fetched for.

    Returns
    -------
    DataFrame
        In the engine of `ledger`: one row per update in the given order, without repeats:

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
    included in the amount that leaves. The modules `toolkit.analysis.pnl.perp_flows` and
    `toolkit.analysis.pnl.wallet_flows` have the rule of each type; docs/assumptions.md lists what
    they assume.

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
    return frame_access.result_from_frame(
        rows.select(*FLOWS), {"ledger": ledger}, helper="ledger.flows"
    )


def sums(
    ledger: IntoFrameT, by: str | Iterable[str] | None = ("type",), account: str | None = None
) -> IntoFrameT:
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
        In the engine of `ledger`, sorted by group: the columns of `by`, then:

        - ``updates`` int64: number of updates
        - ``perp``: amount into the perp account less the amount out of it, in USD
        - ``spot_usdc``: USDC into the spot wallet less USDC out of it, in USD
        - ``deposits``: amounts into the entire account, in USD, at least 0
        - ``withdrawals``: amounts out of the entire account, in USD, at most 0
        - ``net_deposits``: ``deposits + withdrawals``, in USD
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
    Sums of groups add up to the total. Repeated rows count once. Rows without a hash cannot be
    identified, and all of them count.

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
    frame_access.require_columns(
        rows, [key for key in keys if key not in grouping.CALENDAR], "ledger"
    )
    rows = grouping.add_calendar(rows, keys)
    usd, lost = nw.col("usd"), ~nw.col("known")
    amounts = {
        "perp": nw.col("perp"),
        "spot_usdc": nw.when(nw.col("token") == "USDC").then(nw.col("spot")),
        "deposits": nw.when(usd > 0).then(usd),
        "withdrawals": nw.when(usd < 0).then(usd),
        "net_deposits": usd,
    }
    rows = rows.select(
        *keys,
        "time",
        **amounts,
        unpriced=frame_access.flag(~lost & usd.is_null()),
        unknown=frame_access.flag(lost),
    )
    result = _sum_movements(rows, keys, kind)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    return frame_access.result_from_frame(result, {"ledger": ledger}, helper="ledger.sums", by=keys)


def unknown(ledger: IntoFrameT, account: str | None = None) -> IntoFrameT:
    """Return the number of updates whose amount or direction is not known, by type.

    Parameters
    ----------
    ledger, account
        See `flows`.

    Returns
    -------
    DataFrame
        In the engine of `ledger`, sorted by type; empty if all updates are known:

        - ``type`` text: the type of the updates
        - ``reason`` text: ``"unknown type"``, or ``"amount or direction missing"``
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
    return frame_access.result_from_frame(result, {"ledger": ledger}, helper="ledger.unknown")


def _ledger_movements(ledger: Any, account: str | None) -> tuple[Frame, NumberKind]:
    """Return the updates with their movements of perp account and spot wallet."""
    ledger = drop_repeated_rows(ledger, "ledger")
    frame = frame_access.open_frame(ledger, "ledger")
    frame_access.require_columns(frame, NEEDED, "ledger")
    kind = frame_access.number_kind(frame, AMOUNTS, "ledger")
    accounts = row_owners.account_names(ledger, account)
    has_account = "account" in frame.columns
    owner = accounts[0] if len(accounts) == 1 and (account is not None or not has_account) else None
    if owner is not None and has_account:
        frame = frame.filter(row_owners.lower_address("account") == owner)
    rows = add_wallet_flows(add_perp_flows(frame, kind, owner), kind)
    if owner is not None:
        name = nw.lit(owner)
    elif has_account:
        name = nw.col("account")
    else:
        name = nw.lit(None).cast(nw.String())
    known = ~(nw.col("flow").is_null() | nw.col("spot").is_null())
    rows = rows.with_columns(account=name, known=known, _priced=_wallet_usd(kind))
    number = frame_access.number_type(kind)
    rows = rows.with_columns(
        perp=nw.when(known).then(nw.col("flow")).cast(number),
        spot=nw.when(known).then(nw.col("spot")).cast(number),
    )
    whole = nw.col("perp") + nw.col("_priced")
    return rows.with_columns(usd=whole.cast(number)), kind


def _wallet_usd(kind: NumberKind) -> nw.Expr:
    """Return the wallet's movement in USD: USDC at par, other tokens at the row's own value."""
    value = nw.col("usdc_value")
    return (
        nw.when(nw.col("spot") == 0)
        .then(frame_access.zero_literal(kind))
        .when(nw.col("token").is_in(CASH))
        .then(nw.col("spot"))
        .when(nw.col("spot") > 0)
        .then(value)
        .when(nw.col("spot") < 0)
        .then(-value)
    )


def _sum_movements(rows: Frame, keys: list[str], kind: NumberKind) -> Frame:
    every = [
        nw.col("time").count().alias("updates"),
        *(nw.col(name).sum() for name in (*MONEY, "unpriced", "unknown")),
    ]
    made = rows.group_by(*keys).agg(*every) if keys else rows.select(*every)
    number = frame_access.number_type(kind)
    return made.select(
        *keys,
        nw.col("updates").cast(nw.Int64()),
        *(nw.col(name).cast(number) for name in MONEY),
        *(nw.col(name).cast(nw.Int64()) for name in ("unpriced", "unknown")),
    )
