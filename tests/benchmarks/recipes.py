"""What a user would write by hand in pandas: recipes beside the helpers.

Of each helper there are two: `..._sums` computes the main figures only; `..._same` computes nearly
the columns that the helper returns.
"""

import math

import numpy as np
import pandas as pd

KEYS = ["user", "coin"]
COINS = ["BTC", "ETH", "SOL", "xyz:GOLD"]
META = pd.DataFrame({"name": COINS, "sz_decimals": [2, 2, 2, 2]})


def make_fills(n, accounts=11, seed=0):
    """Return fills of some accounts in four perps with whole chains of positions.

    Several come in one millisecond. The accounts are in order.
    """
    numbers = np.random.default_rng(seed)
    user = np.sort(numbers.integers(0, accounts, n))
    px, sz = np.round(numbers.uniform(90, 110, n), 1), np.round(numbers.uniform(0.1, 5, n), 2)
    ms = 1_756_684_800_000 + np.cumsum(numbers.choice([0, 0, 7_000, 25_000], n))
    fills = pd.DataFrame(
        {
            "user": [f"0x{number + 1000 * seed:040x}" for number in user],
            "coin": numbers.choice(COINS, n),
            "px": px,
            "sz": sz,
            "side": numbers.choice(["A", "B"], n),
            "time": pd.to_datetime(ms, unit="ms", utc=True).as_unit("ms"),
        }
    )
    signed = fills["sz"].where(fills["side"] == "B", -fills["sz"])
    end = signed.groupby([fills[key] for key in KEYS]).cumsum().round(2)
    start = (end - signed).round(2)
    opens = (start == 0) | (np.sign(start) == np.sign(signed))
    side = np.where(np.where(opens, signed, start) > 0, "Long", "Short").astype(object)
    trade = np.arange(n) + 1 + n * seed
    return fills.assign(
        start_position=start,
        dir=np.where(opens, "Open ", "Close ") + side,
        closed_pnl=np.where(opens, 0.0, np.round(numbers.normal(0, 5, n), 6)),
        fee=np.round(px * sz * 4e-4, 6),
        builder_fee=np.where(numbers.random(n) < 0.2, 0.001, np.nan),
        fee_token="USDC",
        crossed=numbers.random(n) < 0.6,
        tid=trade,
        oid=trade // 2 + 1,
        tx_index=np.arange(n),
    )


def make_payments(fills):
    """Return one funding payment for each account, coin and hour with fills."""
    payments = pd.DataFrame(
        {
            "user": fills["user"],
            "coin": fills["coin"],
            "time": fills["time"].dt.floor("h"),
            "usdc": fills["closed_pnl"] / 10,
            "szi": fills["start_position"],
            "funding_rate": 1e-5,
            "type": "funding",
        }
    )
    return payments.drop_duplicates([*KEYS, "time"])


def attribution_sums(fills):
    rows = fills.assign(day=fills["time"].dt.floor("D"), volume=fills["px"] * fills["sz"])
    groups = rows.groupby(["day", "coin"], as_index=False)
    sums = groups[["closed_pnl", "fee", "builder_fee", "volume"]].sum()
    return sums.assign(net=sums["closed_pnl"] - sums["fee"])


def attribution_same(fills):
    builder, fee = fills["builder_fee"].fillna(0.0), fills["fee"].fillna(0.0)
    coin, cash = fills["coin"], fills["fee_token"].isna() | (fills["fee_token"] == "USDC")
    spot = coin.str.startswith("@") | coin.str.contains("/", regex=False)
    outcome, dex = coin.str.startswith("#"), coin.str.contains(":", regex=False)
    in_token = ~cash & spot & (fills["side"] == "B")
    par = ~cash & ~in_token & (spot | outcome | dex)
    unpriced = ~cash & ~in_token & ~par
    fee = fee.where(~(in_token | unpriced), 0.0)
    words = ["Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question"]
    conversion = outcome & fills["dir"].isin(words)
    amounts = fills[["px", "sz", "closed_pnl", "fee"]]
    rows = pd.DataFrame(
        {
            "day": fills["time"].dt.floor("D"),
            "coin": coin,
            "fills": (~conversion).astype(int),
            "volume": (fills["px"] * fills["sz"]).where(~conversion, 0.0),
            "closed_pnl": fills["closed_pnl"].fillna(0.0),
            "trading_fee": -(fee - builder).clip(lower=0),
            "builder_fee": -builder,
            "rebate": -(fee - builder).clip(upper=0),
            "net": fills["closed_pnl"].fillna(0.0) - fee,
            "fees_in_cost": -(fills["fee"] * fills["px"]).where(in_token, 0.0),
            "missing_amounts": amounts.isna().any(axis=1).astype(int),
            "unpriced_fees": (unpriced & (fills["fee"] != 0)).astype(int),
            "at_par": par.astype(int),
        }
    )
    return rows.groupby(["day", "coin"], as_index=False).sum()


def round_trips_sums(fills):
    signed = fills["sz"].where(fills["side"] == "B", -fills["sz"])
    start = fills["start_position"]
    end = (start + signed).round(8)
    is_end = (end == 0) | (np.sign(end) * np.sign(start) < 0)
    trip = is_end.groupby([fills[key] for key in KEYS]).cumsum().shift(fill_value=0)
    return (
        fills.assign(trip=trip)
        .groupby([*KEYS, "trip"])
        .agg(
            opened=("time", "min"),
            closed=("time", "max"),
            gross=("closed_pnl", "sum"),
            fees=("fee", "sum"),
            fills=("px", "size"),
        )
    )


def round_trips_same(fills):
    rows = fills.sort_values([*KEYS, "time", "tx_index"], kind="stable")
    sign = np.where(rows["side"] == "B", 1.0, -1.0)
    change, start = sign * rows["sz"].to_numpy(), rows["start_position"].to_numpy()
    end = np.round(start + change, 8)
    groups = [rows[key] for key in KEYS]
    is_end = pd.Series((end == 0) | (np.sign(end) * np.sign(start) < 0), index=rows.index)
    trip = is_end.groupby(groups).cumsum().groupby(groups).shift(fill_value=0)
    reduces = (start != 0) & (np.sign(start) != sign)
    closing = np.where(reduces, np.minimum(abs(start), abs(change)), 0.0)
    opening = abs(change) - closing
    trips = (
        rows[[*KEYS, "time", "closed_pnl", "fee", "dir"]]
        .assign(
            trip=trip,
            opening=opening,
            opened_usd=opening * rows["px"],
            closing=closing,
            closed_usd=closing * rows["px"],
            size=np.maximum(abs(start), abs(end)),
            end=end,
            sign=sign,
        )
        .groupby([*KEYS, "trip"])
        .agg(
            side=("sign", "first"),
            opened=("time", "first"),
            closed=("time", "last"),
            fills=("opening", "size"),
            size=("size", "max"),
            opened_usd=("opened_usd", "sum"),
            opening=("opening", "sum"),
            closed_usd=("closed_usd", "sum"),
            closing=("closing", "sum"),
            gross=("closed_pnl", "sum"),
            fees=("fee", "sum"),
            end=("end", "last"),
            how=("dir", "last"),
        )
        .reset_index()
    )
    net = trips["gross"] - trips["fees"]
    return trips.assign(
        entry_px=trips["opened_usd"] / trips["opening"],
        exit_px=trips["closed_usd"] / trips["closing"],
        net=net,
        return_=net / trips["opened_usd"],
        duration_hours=(trips["closed"] - trips["opened"]) / pd.Timedelta("1h"),
        status=np.where(trips["end"] == 0, "closed", "open"),
        forced=trips["how"].str.startswith("Liquidated"),
    )


def positions_sums(fills):
    rows = fills.sort_values([*KEYS, "time"], kind="stable")
    change = rows["sz"].where(rows["side"] == "B", -rows["sz"])
    end = (rows["start_position"] + change).round(8)
    before = end.groupby([rows[key] for key in KEYS]).shift()
    return rows[[*KEYS, "time", "start_position", "px", "closed_pnl"]].assign(
        change=change,
        position=end,
        chain_break=before.notna() & (before != rows["start_position"]),
        gap=(rows["start_position"] - before).fillna(0),
    )


def positions_same(fills):
    rows = positions_sums(fills)
    chains = pd.factorize(rows["user"] + rows["coin"])[0].tolist()
    steps = zip(
        chains, *(rows[x].tolist() for x in ("start_position", "change", "px")), strict=True
    )
    entries, expected, average, last, tick = [], [], 0.0, None, 1e-4
    for chain, start, change, px in steps:
        average, last = average if chain == last else 0.0, chain
        end = start + change
        if start == 0 or (start > 0) == (change > 0):
            average = (average * abs(start) + px * abs(change)) / abs(end) if end else px
            expected.append(0.0)
        else:
            entry = math.floor(average / tick + 1e-7) * tick
            size = min(abs(start), abs(change))
            expected.append(size * (px - entry) * (1 if start > 0 else -1))
            if end and (end > 0) != (start > 0):
                average = px
        entries.append(math.floor(average / tick + 1e-7) * tick)
    return rows.assign(entry_px=entries, expected_closed_pnl=expected)


def equity_sums(fills):
    net, hour = fills["closed_pnl"] - fills["fee"], fills["time"].dt.floor("h")
    hourly = net.groupby([fills["user"], hour]).sum().rename("net").reset_index("user")
    whole = hourly.groupby("user")["net"].apply(
        lambda one: one.asfreq("h", fill_value=0.0).cumsum()
    )
    return whole.reset_index()


def funding_sums(payments):
    received = payments["usdc"].clip(lower=0)
    rows = payments.assign(received=received, paid=payments["usdc"] - received)
    return rows.groupby("coin").agg(
        paid=("paid", "sum"), received=("received", "sum"), net=("usdc", "sum"), n=("usdc", "size")
    )
