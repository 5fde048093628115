"""The values of the performance part of a wallet report, recomputed from its frames as floats."""

import warnings
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import toolkit as tk
from tests.reports.compute_once import compute_once
from toolkit.errors import HistoryWarning, MissingColumns

Values = dict[str, Any]
DAY = pd.Timedelta(days=1)


@compute_once
def _curve(wallet):
    made = wallet.results.frames
    paid = wallet.results.funding
    marks = None if paid is None else tk.funding.implied_oracle(paid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)
        curve: pd.DataFrame = tk.pnl.equity(
            made.fills, paid, made.ledger, marks=marks, sz_decimals=made.perps, account=made.user
        )
    names = ["realised", "equity", "flows"]
    return curve.astype(dict.fromkeys(names, "float64"))


@compute_once
def _returns(wallet):
    """Walk the hours of the curve; each day is its gain by its average capital."""
    curve = _curve(wallet)
    is_marked = curve["equity"].notna().mean() >= 0.9
    curve = curve[curve["unknown_flows"] == 0]
    values = curve["equity"] if is_marked else curve["realised"] + curve["flows"]
    ends = list(curve["time"])
    found = []
    value, flowed, since = 0.0, 0.0, ends[0] - pd.Timedelta(hours=1)
    flows: list[tuple[pd.Timestamp, float]] = []
    last: tuple[pd.Timestamp, float] | None = None
    for place, end in enumerate(ends):
        flow = float(curve["flows"].iloc[place]) - flowed
        if flow:
            flows.append((end - pd.Timedelta(minutes=30), flow))
        flowed += flow
        if not np.isnan(values.iloc[place]):
            last = (end, float(values.iloc[place]))
            known = len(flows)
        is_last = place == len(ends) - 1 or (end - DAY / 24 / 2).floor("D") != (
            ends[place + 1] - DAY / 24 / 2
        ).floor("D")
        if is_last and last is not None:
            until, now = last
            begin = flows[0][0] if value == 0 and flows else since
            counted = flows[:known]
            capital = value + sum(f * ((until - at) / (until - begin)) for at, f in counted)
            gain = now - value - sum(f for _, f in counted)
            if capital > 0:
                found.append(gain / capital)
            value, since, flows, last = now, until, flows[known:], None
    return found


@compute_once
def _trips(wallet):
    made = wallet.results.frames
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            trips = tk.pnl.round_trips(made.fills, wallet.results.funding, account=made.user)
        except MissingColumns:
            return pd.DataFrame({"net": []})
    return trips[trips["status"].isin(["closed", "liquidated"]) & trips["net"].notna()]


def sentence_returns_unknown(wallet):
    made = wallet.results.frames
    assert made.start_ms > 0 or made.fills.empty or made.ledger.empty or not _returns(wallet)
    return {}


def sentence_amounts_unknown(wallet):
    fills = wallet.results.frames.fills
    assert fills[["closed_pnl", "fee", "start_position"]].isna().any(axis=None)
    return {}


def sentence_total_return(wallet):
    returns = _returns(wallet)
    return {"value": float(np.prod([1 + each for each in returns])) - 1, "n": len(returns)}


def sentence_unknown_flows(wallet):
    ledger = wallet.results.frames.ledger
    is_vault = ledger["type"] == "vaultWithdraw"
    return {"flows": int((is_vault & ledger["net_withdrawn_usd"].isna()).sum())}


def sentence_drawdown(wallet):
    value = high = 1.0
    deepest = 0.0
    for each in _returns(wallet):
        value *= 1 + each
        high = max(high, value)
        deepest = min(deepest, value / high - 1)
    return {"value": deepest}


def sentence_sharpe(wallet):
    returns = np.array(_returns(wallet))
    n, ratio = len(returns), returns.mean() / returns.std(ddof=1)
    z = (returns - returns.mean()) / returns.std()
    terms = z - ratio / 2 * (z**2 - 1)
    terms -= terms.mean()
    lags = min(int(4 * (n / 100) ** (2 / 9)), n - 2)
    variance = sum(
        (1 - abs(lag) / (lags + 1)) * terms[abs(lag) :] @ terms[: n - abs(lag)]
        for lag in range(-lags, lags + 1)
    )
    reach = stats.t.ppf(0.975, n - 1) * sqrt(variance / n / (n - 1))
    year = sqrt(365)
    return {"value": year * ratio, "low": year * (ratio - reach), "high": year * (ratio + reach)}


def sentence_realised_only(wallet):
    curve = _curve(wallet)
    return {"missing": int(curve["unrealised"].isna().sum()), "points": len(curve)}


def sentence_trips(wallet):
    net = _trips(wallet)["net"]
    return {"n": len(net), "wins": sum(value > 0 for value in net)}


def sentence_one_trip(wallet):
    (net,) = _trips(wallet)["net"]
    return {"net": net}


def sentence_no_trips(wallet):
    assert _trips(wallet).empty
    return {}
