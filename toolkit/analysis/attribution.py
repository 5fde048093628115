"""Where an account's money came from: closed PnL, fees by kind, funding, ledger flows.

Each source is summed over its groups first, then the sums are stacked and summed again: a group
that only one source knows keeps its row, and no decimal column is added to another one (Arrow
decimals grow by a digit at every addition and fail past 38).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw

from toolkit.analysis import columns, fees, owners
from toolkit.analysis.columns import Frame, Numbers
from toolkit.analysis.covers import covered, source
from toolkit.analysis.flows import AMOUNTS, with_flows
from toolkit.analysis.hours import position_hours
from toolkit.analysis.owners import Accounts
from toolkit.errors import MissingColumns

FILL_NUMBERS = ("px", "sz", "closed_pnl", "fee", "builder_fee", "deployer_fee", "priority_gas")
NEEDED = ("coin", "px", "sz", "side", "time", "closed_pnl", "fee")
FEES = ("trading_fee", "builder_fee", "deployer_fee", "rebate")
MONEY = (
    "closed_pnl",
    *FEES,
    "funding",
    "net",
    "ledger",
    "equity_change",
    "unrealised",
    "priority_gas",
)
GAPS = ("missing_amounts", "unpriced_fees", "unknown_flows")
COUNTS = ("fills", *GAPS, "_payments", "_perps")
RESULT = ("fills", "volume", *MONEY, *GAPS, "covers")

POSITION_KEYS = ("user", "coin", "dex")
FUNDING_KEYS = ("user", "coin", "dex", *columns.CALENDAR)
LEDGER_KEYS = ("user", *columns.CALENDAR)
# Spot and outcome fills are paid from another balance than the one whose equity changes.
_SUMMED = (*(name for name in MONEY if name != "equity_change"), "_perp_net")


def attribution(
    fills: Any,
    funding: Any = None,
    ledger: Any = None,
    by: str | Iterable[str] | None = None,
    *,
    positions: tuple[Any, Any] | None = None,
    account: str | None = None,
) -> Any:
    """Split what fills, funding and ledger did to an account into its causes.

    All money is in USD and positive where it is good for the account, so fees are negative and

    - ``net = closed_pnl + trading_fee + builder_fee + deployer_fee + rebate + funding``,
    - ``equity_change = net + ledger``, without the net of spot and outcome fills, which another
      balance pays: the change of the perp account's equity but for unrealised PnL.

    `fee` of a fill already contains its builder and deployer fee; they are taken out of it, not
    added to it. What is not covered is missing, never 0, and `covers` says what is.

    Parameters
    ----------
    fills : DataFrame
        As `tk.user_fills_by_time` gives it (pandas, Polars eager or lazy, DuckDB relation;
        numbers float or exact).
    funding : DataFrame, optional
        Funding rows of the same time: ``coin, time, usdc`` (and ``user``). Of several users,
        as `tk.builder_approved_funding_by_time` gives them, only the rows of the fills' accounts
        count: those in the fills' ``user`` column, `account`, or whom the fills were fetched for.
    ledger : DataFrame, optional
        Ledger updates of the same account and time, as `tk.user_non_funding_ledger_updates`
        gives them (for several by `tk.many`: with a column ``account``). Cash into the perp
        account, on any dex, is positive; spot-only movements and liquidation rows move none.
    by : str or list of str, optional
        One row for each group: ``user``, ``coin``, ``dex``, ``hour``, ``day``, ``week`` (Monday,
        UTC), ``side``, ``dir``, ``crossed``, ``builder``, or any other column of the fills.
        Without it, one row. By ``user``, rows of each source count for the user they name, in
        lower case.
    positions : (before, after), optional
        What was open before the first and after the last fill, for the change of unrealised PnL:
        frames of ``coin, unrealized_pnl`` (and ``user``), as `tk.batch_clearinghouse_states` or
        `tk.pnl.unrealised` give them. None for one of them: nothing was open.
    account : str, optional
        Whose fills, funding and ledger they are: funding rows name many accounts, transfers
        both parties. Without it the ledger's ``account`` column, or the address that fills and
        ledger were fetched for.

    Returns
    -------
    DataFrame
        Of the engine of `fills`, sorted by the groups: the columns of `by`, then

        - ``fills`` int64: how many;
        - ``volume`` float64: USD, px * sz;
        - ``closed_pnl``: USD, before fees and funding; like all money below, of the kind of
          numbers of the fills;
        - ``trading_fee, builder_fee, deployer_fee``: USD, negative: what was paid to the exchange,
          to builders, to the deployers of dexes;
        - ``rebate``: USD, positive: fees below 0;
        - ``funding``: USD, positive where the account received it;
        - ``net``: USD, the sum of these parts;
        - ``ledger``: USD, positive where it came into the perp account;
        - ``equity_change``: USD, net of perps and ledger;
        - ``unrealised``: change of unrealised PnL; equity_change + unrealised is the whole
          change of the perp account's equity. Missing without `positions`;
        - ``priority_gas``: in the chain's native token, negative, not part of net;
        - ``missing_amounts`` int64: fills without px, sz, closed PnL or fee, funding rows without
          an amount; what they lack is not part of any sum;
        - ``unpriced_fees`` int64: fees in tokens whose price the fills do not tell; they are
          not part of any sum;
        - ``unknown_flows`` int64: ledger rows whose amount cannot be told; likewise;
        - ``covers`` text: which sources the row covers, e.g. ``"fills, funding"``, or ``"fills,
          funding (5 of 712 position hours)"`` where funding rows lack for some of the full hours
          at which the fills show a position (of the row's user, coin, dex; by the calendar, of
          the whole time, and then ``"position hours in all"``). Not covered by `funding` is an
          account with fills and no funding row at all, a coin with positions and none, and an
          hour, day or week without one where any position hour lacks its row: its `funding` is
          missing, and its `net` is without it. What groups have sums up to the whole.

    Raises
    ------
    MissingColumns
        If a frame lacks a column, or holds numbers as text.
    ValueError
        If funding or ledger hold several accounts and nothing says which one the fills are of,
        or if fills and ledger were fetched for different ones.

    Notes
    -----
    A spot buy pays its fee in the bought token; it is valued at the price of the fill. Other
    tokens than USDC, for instance the collateral of a builder-deployed dex, have no price here.

    Position hours are told from ``start_position`` (without it no share is said), up to the last
    fill or payment, or to when whole fills and funding were asked for. A coin's position before
    its first fill is not counted.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": ["BTC", "BTC"], "px": [100.0, 110.0], "sz": [1.0, 1.0], "side": ["B", "A"],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True),
    ...     "closed_pnl": [0.0, 10.0], "fee": [0.05, 0.06], "builder_fee": [0.01, 0.01]})
    >>> attribution(fills)[["fills", "closed_pnl", "trading_fee", "builder_fee", "net", "covers"]]
       fills  closed_pnl  trading_fee  builder_fee   net covers
    0      2        10.0        -0.09        -0.02  9.89  fills
    """
    keys = columns.listed(by, ("time", *FILL_NUMBERS, *RESULT))
    opened = columns.opened(fills, "fills")
    rows, kind = _fills(opened, keys)
    whose = owners.Accounts(opened, owners.named(fills, account))
    parts = [_summed(rows, keys, kind)]
    covers = {"fills": "fills"}
    if funding is not None:
        covers["funding"] = source("funding", keys, FUNDING_KEYS)
    if ledger is not None:
        covers["ledger"] = source("ledger", keys, LEDGER_KEYS)
    if positions is not None:
        covers["unrealised"] = source("unrealised", keys, POSITION_KEYS)
    hours = None
    if covers.get("funding") == "funding":
        hours = position_hours(fills, funding, keys, whose.names)
        parts.append(_summed(_funding(funding, keys, kind, whose), keys, kind))
    if covers.get("ledger") == "ledger":
        fetched_for = _fetched_for(ledger, whose) if account is None else account
        parts.append(_summed(_ledger(ledger, keys, kind, fetched_for, whose), keys, kind))
    if positions is not None and covers["unrealised"] == "unrealised":
        parts += [_summed(one, keys, kind) for one in _open(positions, keys, kind, whose)]
    whole = _summed(columns.stacked(parts), keys, kind) if len(parts) > 1 else parts[0]
    result = covered(whole, keys, kind, covers, hours)
    result = result.select(*keys, *RESULT)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    facts = {"helper": "pnl.attribution", "by": keys, "covers": ", ".join(covers.values())}
    inputs = {"fills": fills, "funding": funding, "ledger": ledger}
    return columns.closed(result, inputs, **facts)


def _fetched_for(ledger: Any, whose: Accounts) -> str | None:
    """Give the address a pandas frame was fetched for, where its provenance tells it."""
    names = owners.named(ledger)
    if len(names) != 1:
        return None
    if len(whose.names) == 1 and list(whose.names) != names:
        raise ValueError(
            f"ledger: it was fetched for {names[0]}, the fills for {whose.names[0]}; "
            "fetch both for one account, or say whose they are (account=)"
        )
    return names[0]


# ASSUMED: closed PnL and funding of a dex with another collateral than USDC count as USD.
def _fills(frame: Frame, keys: Sequence[str]) -> tuple[Frame, Numbers]:
    """Give each fill its keys and its share of every measure."""
    made = ("dex", *columns.CALENDAR)
    columns.need(frame, NEEDED, "fills")
    columns.need(
        frame,
        [key for key in keys if key not in made],
        "fills",
        f"by= takes columns of the fills, or what is made of them: {', '.join(made)}",
    )
    kind = columns.numbers(frame, FILL_NUMBERS, "fills")
    have = frame.collect_schema().names()
    frame = _with_keys(frame, keys)
    frame = frame.with_columns(
        **fees.in_usd(have, kind),
        _unpriced=fees.unpriced(have, kind),
        _closed=columns.filled("closed_pnl", have, kind),
        _lacking=nw.when(_lacks(kind)).then(nw.lit(1)).otherwise(nw.lit(0)),
    )
    number = columns.number_type(kind)
    frame = frame.with_columns(
        _part=(nw.col("_fee") - nw.col("_builder_fee") - nw.col("_deployer_fee")).cast(number)
    )
    nothing = columns.zero(kind)
    paid = nw.when(nw.col("_part") > 0).then(-nw.col("_part")).otherwise(nothing)
    gained = nw.when(nw.col("_part") < 0).then(-nw.col("_part")).otherwise(nothing)
    net = (nw.col("_closed") - nw.col("_fee")).cast(number)
    perp = ~nw.col("coin").str.contains(f"{columns.SPOT_COIN}|{columns.OUTCOME_COIN}")
    volume = nw.col("px").cast(nw.Float64()) * nw.col("sz").cast(nw.Float64())
    unknown = volume.is_null() | volume.is_nan()
    measures = {
        "fills": nw.lit(1),
        "volume": nw.when(unknown).then(nw.lit(0.0)).otherwise(volume),
        "closed_pnl": nw.col("_closed"),
        "trading_fee": paid,
        "builder_fee": columns.negated(nw.col("_builder_fee"), kind),
        "deployer_fee": columns.negated(nw.col("_deployer_fee"), kind),
        "rebate": gained,
        "net": net,
        "_perp_net": nw.when(perp).then(net).otherwise(nothing),
        "_perps": nw.when(perp).then(nw.lit(1)).otherwise(nw.lit(0)),
        "priority_gas": columns.negated(columns.filled("priority_gas", have, kind), kind),
        "missing_amounts": nw.col("_lacking"),
        "unpriced_fees": nw.col("_unpriced"),
    }
    return _measured(frame, keys, kind, measures), kind


def _lacks(kind: Numbers) -> nw.Expr:
    """Tell where a fill says nothing of its price, its size, its closed PnL or its fee."""
    lacks = nw.lit(False)
    for name in ("px", "sz", "closed_pnl", "fee"):
        lacks = lacks | nw.col(name).is_null()
        if kind == "float":
            lacks = lacks | nw.col(name).is_nan()
    return lacks


def _funding(native: Any, keys: Sequence[str], kind: Numbers, whose: Accounts) -> Frame:
    frame = columns.opened(native, "funding", kind)
    made = ("dex", *columns.CALENDAR)
    wanted = [*(k for k in keys if k not in made)]
    columns.need(frame, ["coin", "time", "usdc", *wanted], "funding")
    _same(kind, columns.numbers(frame, ["usdc"], "funding", kind), "funding")
    if "user" not in keys:
        frame = owners.own(frame, "user", whose, "funding")
    usdc = nw.col("usdc")
    told = ~usdc.is_null() if kind == "exact" else ~(usdc.is_null() | usdc.is_nan())
    paid = columns.filled("usdc", frame.collect_schema().names(), kind)
    measures = {
        "funding": paid,
        "net": paid,
        "_perp_net": paid,
        "_payments": nw.when(told).then(nw.lit(1)).otherwise(nw.lit(0)),
        "missing_amounts": nw.when(told).then(nw.lit(0)).otherwise(nw.lit(1)),
    }
    return _measured(_with_keys(frame, keys), keys, kind, measures)


def _ledger(
    native: Any, keys: Sequence[str], kind: Numbers, owner: str | None, whose: Accounts
) -> Frame:
    frame = columns.opened(native, "ledger", kind)
    columns.need(frame, ["time", "type"], "ledger")
    _same(kind, columns.numbers(frame, AMOUNTS, "ledger", kind), "ledger")
    if "user" not in keys:
        frame = owners.own(frame, "account", whose, "ledger")
    elif owner is None:
        columns.need(frame, ["account"], "ledger", "or say whose ledger it is: account=")
    frame = with_flows(frame, kind, owner)
    if "user" in keys:
        user = nw.lit(owner) if owner is not None else nw.col("account")
        frame = frame.with_columns(user=user).with_columns(user=owners.address("user"))
    frame = columns.with_calendar(frame, keys)
    measures = {"ledger": nw.col("flow"), "unknown_flows": nw.col("unknown")}
    return _measured(frame, keys, kind, measures)


def _open(
    positions: tuple[Any, Any], keys: Sequence[str], kind: Numbers, whose: Accounts
) -> list[Frame]:
    """Count what is open in the end for, what was open at first against the account."""
    made = []
    for native, ends in zip(positions, (False, True), strict=True):
        if native is None:
            continue
        frame = columns.opened(native, "positions", kind)
        wanted = ["user"] if "user" in keys else []
        columns.need(frame, ["coin", "unrealized_pnl", *wanted], "positions")
        _same(kind, columns.numbers(frame, ["unrealized_pnl"], "positions", kind), "positions")
        if "user" not in keys:
            frame = owners.own(frame, "user", whose, "positions")
        have = frame.collect_schema().names()
        gain = columns.filled("unrealized_pnl", have, kind)
        gain = gain if ends else columns.negated(gain, kind)
        measures = {"unrealised": gain.cast(columns.number_type(kind))}
        made.append(_measured(_with_keys(frame, keys), keys, kind, measures, "coin"))
    return made


def _same(fills: Numbers, other: Numbers, what: str) -> None:
    if fills != other:
        raise MissingColumns(
            f"{what}: its numbers are {other}, those of the fills {fills}; "
            "fetch both with the same numbers="
        )


def _with_keys(frame: Frame, keys: Sequence[str]) -> Frame:
    if "dex" in keys:
        frame = frame.with_columns(dex=columns.dex_of(nw.col("coin")))
    if "user" in keys:
        frame = frame.with_columns(user=owners.address("user"))
    return columns.with_calendar(frame, keys)


def _measured(
    frame: Frame,
    keys: Sequence[str],
    kind: Numbers,
    measures: Mapping[str, nw.Expr],
    anchor: str = "time",
) -> Frame:
    """Select the keys and every measure, 0 where this source has nothing to say."""
    number = columns.number_type(kind)
    whole = {n: measures.get(n, nw.lit(0)).cast(nw.Int64()) for n in COUNTS}
    money = {n: measures.get(n, columns.zero(kind)).cast(number) for n in _SUMMED}
    volume = measures.get("volume", nw.lit(0.0)).cast(nw.Float64())
    # A constant alone would be one row, not one for each: the anchor carries the length.
    return frame.select(*keys, _anchor=nw.col(anchor), **whole, volume=volume, **money).select(
        *keys, *COUNTS, "volume", *_SUMMED
    )


def _summed(frame: Frame, keys: Sequence[str], kind: Numbers) -> Frame:
    names = (*COUNTS, "volume", *_SUMMED)
    sums = [nw.col(name).sum() for name in names]
    frame = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    number = columns.number_type(kind)
    return frame.select(
        *keys,
        *(nw.col(n).fill_null(0).cast(nw.Int64()) for n in COUNTS),
        nw.col("volume").fill_null(0.0).cast(nw.Float64()),
        *(nw.col(n).fill_null(0).cast(number) for n in _SUMMED),
    )
