"""The values of the reasons in a wallet report, recomputed from its frames."""

from collections import defaultdict
from decimal import Decimal
from typing import Any

import pandas as pd

from tests.reports import recomputed_wallet as wallet
from tests.reports.compute_once import compute_once

Values = dict[str, Any]
HOUR = 3_600_000


def _maker(results):
    rested = whole = 0.0
    for fill in results.frames.fills.itertuples():
        usd = float(fill.px) * float(fill.sz)
        whole += usd
        rested += 0.0 if fill.crossed else usd
    return {"share": rested / whole}


sentence_maker = _maker


def sentence_maker_most(results):
    values = _maker(results)
    assert values["share"] >= 0.5
    return values


def sentence_taker(results):
    assert _maker(results)["share"] == 0
    return {}


@compute_once
def _matched(results):
    """Walk the fills of perps by hour: what was bought and sold in equal amounts, and its gain."""
    sums: dict[tuple[str, int], dict[str, list[Decimal]]] = defaultdict(
        lambda: {"A": [Decimal(0), Decimal(0)], "B": [Decimal(0), Decimal(0)]}
    )
    for fill in results.frames.fills.itertuples():
        if fill.coin[0] not in "@#" and "/" not in fill.coin:
            hour = int(fill.time.timestamp() * 1000) // HOUR
            side = sums[fill.coin, hour][fill.side]
            side[0] += fill.sz
            side[1] += fill.px * fill.sz
    bought = gain = Decimal(0)
    for sides in sums.values():
        (sold_sz, sold_usd), (bought_sz, bought_usd) = sides["A"], sides["B"]
        if sold_sz and bought_sz:
            size = min(sold_sz, bought_sz)
            bought += size * bought_usd / bought_sz
            gain += size * sold_usd / sold_sz - size * bought_usd / bought_sz
    return bought, gain


def sentence_matched(results):
    bought, gain = _matched(results)
    return {"usd": bought, "gain": gain, "rate": 10_000 * gain / bought}


def sentence_held_longer(results):
    closed = sum(results.frames.fills["closed_pnl"], Decimal(0))
    open_ = sum(results.frames.states.positions["unrealized_pnl"], Decimal(0))
    return {"rest": closed + open_ - _matched(results)[1]}


@compute_once
def _routed(results):
    """Return the fees and the volume of each builder, "" if the builder is not named."""
    latest = results.frames.latest
    named = [] if latest is None else latest[latest["builder"].notna()].itertuples()
    names = {fill.oid: fill.builder for fill in named}
    sums: dict[str, list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    in_tokens = wallet.bought(results).index
    for fill in results.frames.fills.drop(in_tokens).itertuples():
        if pd.notna(fill.builder_fee) and fill.builder_fee > 0:
            one = sums[names.get(fill.oid, "")]
            one[0] -= fill.builder_fee
            one[1] += fill.px * fill.sz
    return dict(sums)


def _short(address):
    return f"{address[:8]}\N{HORIZONTAL ELLIPSIS}{address[-4:]}"


def sentence_builders(results):
    paid, usd = (sum(part) for part in zip(*_routed(results).values(), strict=True))
    fills = results.frames.fills.drop(wallet.bought(results).index)
    others = fills[["builder_fee", "deployer_fee"]].astype("object").fillna(Decimal(0)).sum(axis=1)
    fees = [fee - other for fee, other in zip(fills["fee"], others, strict=True)]
    own = -sum(fee for fee in fees if fee > 0)
    return {
        "paid": paid,
        "usd": usd,
        "share": usd / wallet.volume_of(results),
        "rate": 10_000 * paid / usd,
        "own": 10_000 * own / wallet.volume_of(results),
    }


def sentence_builder(results):
    (builder,) = _routed(results)
    return {"builder": _short(builder), **sentence_builders(results)}


def sentence_builder_most(results):
    builder, (paid, usd) = min(_routed(results).items(), key=lambda item: item[1][0])
    assert paid / sum(fees for fees, _ in _routed(results).values()) > Decimal("0.5")
    return {"builder": _short(builder), "paid": paid, "usd": usd, "rate": 10_000 * paid / usd}


def sentence_without_builders(results):
    paid = sum(fees for fees, _ in _routed(results).values())
    return {"net": wallet.sentence_net(results)["net"] - paid}


def _by(results, by):
    return {key: Decimal(str(net)) for key, net in wallet.net_of(results, by).items()}


def _largest(results, sign):
    nets = {coin: net for coin, net in _by(results, "coin").items() if coin[0] != "#"}
    coin, net = max(nets.items(), key=lambda item: sign * item[1])
    assert sign * net > 0
    return {"coin": coin, "net": net}


def sentence_coin_gain(results):
    return _largest(results, 1)


def sentence_coin_loss(results):
    return _largest(results, -1)


def _day(results, sign):
    assert sign * wallet.sentence_net(results)["net"] >= 0
    day, net = max(_by(results, "day").items(), key=lambda item: sign * item[1])
    return {"day": day.strftime("%Y-%m-%d"), "net": net}


def sentence_best_day(results):
    return _day(results, 1)


def sentence_worst_day(results):
    return _day(results, -1)
