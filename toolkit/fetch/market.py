"""Market data: depth, slippage, metadata, limits."""

from typing import NamedTuple

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame, fetch_frames
from toolkit.fetch.registry import fetches, shows_frames
from toolkit.times import Time


@shows_frames
class DexLimits(NamedTuple):
    """The limits of a whole dex, and of each of its coins."""

    dex: pd.DataFrame
    coins: pd.DataFrame


@shows_frames
class SpotMarkets(NamedTuple):
    """The spot markets, and the tokens."""

    pairs: pd.DataFrame
    tokens: pd.DataFrame


@fetches("currentDepth")
def current_depth(
    *,
    dex: str | None = None,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the book depth of every market, cumulative within six distances from the mid price.

    All markets are in one batch, which the service renews every second; thin markets are
    included. The same coin can exist on several dexes: the key is (`dex`, `coin`).

    Costs 5 points a request. This is an add-on: the key needs a permission for it.

    Parameters
    ----------
    dex : str, optional
        Only markets of this dex; every name of the native dex is accepted.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per dex, coin and distance of 10, 25, 50, 100, 200 and 500 basis points.

    Raises
    ------
    NotPermitted
        If the key does not have the add-on.
    ServiceDown
        If the service has not published depth yet.

    Examples
    --------
    >>> import toolkit as tk
    >>> depth = tk.frame("currentDepth", [])
    >>> list(depth)
    ['timestamp_ms', 'coin', 'dex', 'bps', 'bid_depth_usd', 'ask_depth_usd']
    """
    return fetch_frame("currentDepth", **locals())


@fetches("slippageHistory")
def slippage_history(
    coin: str,
    amount: float,
    start: Time,
    end: Time | None = None,
    *,
    page_size: int = 500,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch what a market order of one size would have cost, every 15 minutes.

    There are samples of every perp market, also of builder-deployed dexes. All pages are read.

    Costs 10 points a request.

    Parameters
    ----------
    coin : str
        The symbol on the native dex, ``<dex>:<symbol>`` on a builder-deployed dex; ``btc``,
        ``$BTC`` and ``BTC-PERP`` mean BTC.
    amount : float
        Notional in USD: 1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5 or 1e6.
    start : Time
        First time, inclusive.
    end : Time, optional
        Last time, inclusive; by default now.
    page_size : int
        Samples of one page, 1 to 2000.
    max_rows : int, optional
        Most samples to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per sample, oldest first.

    Raises
    ------
    BadRequest
        If there are no samples for `amount`, or there is no such coin.
    Incomplete
        If all rows of a full page have one time, so that rows after it could be lost.

    Notes
    -----
    Costs are in basis points, positive when paid, rounded by the service to two decimals.
    A missing cost means that the book was too thin for the size; it is not zero.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> samples = tk.slippage_history("BTC", 10_000, "1d")
    >>> samples["timestamp"].is_monotonic_increasing
    True
    >>> samples["amount_usd"].unique().tolist()
    [10000.0]
    """
    return fetch_frame("slippageHistory", **locals())


@fetches("fundingHistory")
def funding_history(
    coin: str,
    start: Time,
    end: Time | None = None,
    *,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the funding rates of a perp, one for each hour.

    All pages are read.

    Costs 5 points a request.

    Parameters
    ----------
    coin : str
        The symbol on the native dex, ``<dex>:<symbol>`` on a builder-deployed dex; ``btc``,
        ``$BTC`` and ``BTC-PERP`` mean BTC.
    start : Time
        First time, inclusive.
    end : Time, optional
        Last time, inclusive; by default now.
    max_rows : int, optional
        Most rates to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per payment, oldest first. Empty for an unknown coin.

    Raises
    ------
    BadRequest
        If a value is malformed.
    Incomplete
        If not every page could be read.

    Notes
    -----
    A positive `funding_rate` means that longs pay. It is the rate of one payment: of one hour, or
    of eight hours in rows of 2023. `premium` is a fraction of the oracle price.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> rates = tk.funding_history("BTC", "1d")
    >>> list(rates), len(rates)
    (['coin', 'funding_rate', 'premium', 'time'], 25)
    """
    return fetch_frame("fundingHistory", **locals())


@fetches("candleSnapshot")
def candles(
    coin: str,
    interval: str,
    start: Time,
    end: Time | None = None,
    *,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the candles of a market: open, high, low, close and volume by interval.

    The range is requested in windows of 5,000 intervals. The exchange's own API keeps only the
    newest 5,000 candles of an interval: if older ones are requested, `Incomplete` says from when on
    the rows are complete. The query service keeps more, and also has intervals of seconds.

    Costs 2 points a request.

    Parameters
    ----------
    coin : str
        The symbol on the native dex, ``<dex>:<symbol>`` on a builder-deployed dex, ``@<number>``
        for spot; ``btc``, ``BTC-PERP`` and ``HYPE/USDC`` mean these markets.
    interval : str
        1s, 15s, 30s, 1m, 3m, 5m, 15m, 30m, 1h, 2h, 4h, 8h, 12h, 1d, 3d, 1w or 1M.
    start : Time
        First time, inclusive. The candle that contains it is the first one.
    end : Time, optional
        Last time, inclusive; by default now.
    max_rows : int, optional
        Most candles to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per candle, oldest first. An interval without trades may have no row.

    Raises
    ------
    BadRequest
        If a value is malformed.
    Incomplete
        If not every window could be read, or older candles are not kept.

    Notes
    -----
    The candle of the present is not finished: its `end_time` is in the future. `volume` is in units
    of the coin. Each trade counts once. A warning
    says if the rows begin long after `start`.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> hours = tk.candles("BTC", "1h", "2025-09-29", "2025-09-29T23:59")
    >>> len(hours), bool((hours["low"] <= hours["close"]).all())
    (24, True)
    """
    return fetch_frame("candleSnapshot", **locals())


@fetches("openInterestHistory")
def open_interest_history(
    start: Time,
    end: Time | None = None,
    *,
    coin: str | None = None,
    sector: str | None = None,
    interval: str = "1h",
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the open interest of a perp, or of a group of them, by interval.

    The range is requested in windows of 500 intervals.

    Costs 2 points a request. Data since 2025-08-01.

    Parameters
    ----------
    start : Time
        First time, inclusive.
    end : Time, optional
        Last time, inclusive; by default now.
    coin : str, optional
        The symbol on the native dex, ``<dex>:<symbol>`` on a builder-deployed dex; ``btc``,
        ``$BTC`` and ``BTC-PERP`` mean BTC. Required unless `sector` is passed.
    sector : str, optional
        The name of a group of markets, instead of `coin`. Only USD can be added over markets.
    interval : str
        1m, 3m, 5m, 15m, 30m, 1h, 2h, 4h, 8h, 12h, 1d, 3d, 1w or 1M.
    max_rows : int, optional
        Most rows to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per interval, oldest first; `time` is its first moment.

    Raises
    ------
    BadRequest
        If a value is malformed, or not exactly one of `coin` and `sector` is passed.
    Incomplete
        If not every window could be read.

    Notes
    -----
    Open interest is the sum of all longs and all shorts, so it is twice the contracts that exist.
    It is in units of the coin; `oi_usd` is that of the last moment in USD.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> hours = tk.open_interest_history("1d", coin="BTC")
    >>> bool((hours["oi_open"][1:].values == hours["oi_close"][:-1].values).all())
    True
    """
    return fetch_frame("openInterestHistory", **locals())


@fetches("meta")
def meta(
    *,
    dex: str = "",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the perpetuals of a dex.

    Costs 2 points a request.

    Parameters
    ----------
    dex : str
        The dex. The default is the native dex; each of its names is accepted.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per perpetual, in the order of the exchange's asset index.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> perps = tk.meta()
    >>> perps["name"].is_unique, bool((perps["max_leverage"] >= 1).all())
    (True, True)
    """
    return fetch_frame("meta", **locals())


@fetches("marginTables")
def margin_tables(
    *,
    dex: str = "",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the margin tables of a dex: the maximum leverage by the notional of a position.

    The service sends them with `meta`; the column ``margin_table_id`` there names the table of
    each perpetual. An id below 50 that is not in the tables means one tier with that leverage.

    Costs 2 points a request.

    Parameters
    ----------
    dex : str
        The dex. The default is the native dex; each of its names is accepted.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per tier: tables in the order of the answer, tiers from the lowest notional up.
        Empty if the service sends no tables.

    Examples
    --------
    >>> import toolkit as tk
    >>> tiers = [{"lowerBound": "0.0", "maxLeverage": 10}, {"lowerBound": "3e6", "maxLeverage": 5}]
    >>> table = {"description": "tiered 10x", "marginTiers": tiers}
    >>> rows = tk.frame("marginTables", {"universe": [], "marginTables": [[52, table]]})
    >>> rows[["margin_table_id", "tier", "lower_bound", "max_leverage"]].values.tolist()
    [[52, 0, 0.0, 10], [52, 1, 3000000.0, 5]]
    """
    return fetch_frame("marginTables", **locals())


@fetches("metaAndAssetCtxs")
def meta_and_asset_ctxs(
    *,
    dex: str = "",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the perpetuals of a dex with their prices, funding, open interest and volume.

    Costs 2 points a request.

    Parameters
    ----------
    dex : str
        The dex. The default is the native dex; each of its names is accepted.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per perpetual: its metadata and its market state, joined by index.

    Notes
    -----
    `funding` is the rate of the current hour; positive means that longs pay. `mid_px` and
    `premium` are missing if the book is empty.

    Examples
    --------
    >>> import toolkit as tk
    >>> perps = tk.frame("metaAndAssetCtxs", [{"universe": []}, []])
    >>> {"name", "mark_px", "funding", "open_interest"} <= set(perps)
    True
    """
    return fetch_frame("metaAndAssetCtxs", **locals())


@fetches("perpDexLimits")
def perp_dex_limits(
    dex: str, *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> DexLimits:
    """Fetch the open-interest and transfer limits of a builder-deployed dex.

    Costs 2 points a request.

    Parameters
    ----------
    dex : str
        The dex; empty text, or any other name of the native dex, is the native one.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DexLimits
        Two frames: `dex`, one row with the limits of the whole dex, and `coins`, one row
        per coin. Both are empty if no limits are configured.

    Examples
    --------
    >>> import toolkit as tk
    >>> answer = {
    ...     "totalOiCap": "10000000.0",
    ...     "oiSzCapPerPerp": "20000000000.0",
    ...     "maxTransferNtl": "100000000.0",
    ...     "coinToOiCap": [["flx:GOLD", "5000000.0"]],
    ... }
    >>> dex, coins = tk.frame("perpDexLimits", answer)
    >>> coins["coin"].tolist(), bool((coins["oi_cap"] <= dex["total_oi_cap"][0]).all())
    (['flx:GOLD'], True)
    """
    return DexLimits(*fetch_frames("perpDexLimits", **locals()))


@fetches("spotMeta")
def spot_meta(
    *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> SpotMarkets:
    """Fetch the spot markets, and the tokens of the exchange.

    Fills and orders name a spot market by its `name`, such as ``@107``; `tk.market_names` has the
    readable names.

    Costs 2 points a request.

    Parameters
    ----------
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    SpotMarkets
        Two frames: `pairs`, one row per spot market, and `tokens`, one row per token.

    Notes
    -----
    In `pairs`, `tokens` holds two values of the column `index` of the frame of tokens: the base and
    the quote token.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> pairs, tokens = tk.spot_meta()
    >>> names = tokens.set_index("index")["name"]
    >>> base, quote = pairs["tokens"][0]
    >>> f"{pairs['name'][0]} trades {names[base]} for {names[quote]}"
    'PURR/USDC trades PURR for USDC'
    """
    return SpotMarkets(*fetch_frames("spotMeta", **locals()))


@fetches("allMids")
def all_mids(
    *,
    dex: str = "",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the mid price of every market of a dex. Spot markets belong to the native dex.

    A market without a book has no row.

    Costs 2 points a request.

    Parameters
    ----------
    dex : str
        The dex. The default is the native dex; each of its names is accepted.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per market: `coin` and `mid_px`.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> mids = tk.all_mids().set_index("coin")["mid_px"]
    >>> bool(mids["BTC"] > mids["ETH"] > 0)
    True
    """
    return fetch_frame("allMids", **locals())


@fetches("predictedFundings")
def predicted_fundings(
    *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch the next funding rate of every perp, on this exchange and on others.

    Costs 2 points a request.

    Parameters
    ----------
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per coin and venue: `coin`, `venue`, `funding_rate`, `next_funding_time` and
        `funding_interval_hours`. A venue without the coin has a row without values.

    Notes
    -----
    `funding_rate` is for one interval of the venue, so divide it by `funding_interval_hours` to
    compare venues. It is positive if longs pay. The venue ``HlPerp`` is this exchange. A simulated
    exchange has the rates of no other venue.

    Examples
    --------
    >>> import toolkit as tk
    >>> other = {"fundingRate": "0.0004", "nextFundingTime": 0, "fundingIntervalHours": 8}
    >>> own = {"fundingRate": "0.0001", "nextFundingTime": 0, "fundingIntervalHours": 1}
    >>> rates = tk.frame("predictedFundings", [["BTC", [["BinPerp", other], ["HlPerp", own]]]])
    >>> hourly = rates["funding_rate"] / rates["funding_interval_hours"]
    >>> dict(zip(rates["venue"], hourly.tolist()))
    {'BinPerp': 5e-05, 'HlPerp': 0.0001}
    """
    return fetch_frame("predictedFundings", **locals())
