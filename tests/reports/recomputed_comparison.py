"""The values of the comparison report, recomputed from the frames of its accounts."""

from typing import Any

import numpy as np
from scipy import stats

from tests.reports import recomputed_performance, recomputed_wallet
from toolkit.plots.formats import short_address

Values = dict[str, Any]


def _fills(comparison):
    return [len(wallet.results.frames.fills) for wallet in comparison.wallets]


def _volume(comparison):
    rows = [recomputed_wallet._row(wallet.results) for wallet in comparison.wallets]
    return sum(float(row["volume"]) for row in rows)


def _nets(comparison):
    """Return address -> net, without accounts of which amounts are missing; the highest first."""
    nets = {
        wallet.results.frames.user: float(recomputed_wallet._row(wallet.results)["net"])
        for wallet in comparison.wallets
        if not wallet.results.frames.fills[["closed_pnl", "fee"]].isna().any(axis=None)
    }
    return dict(sorted(nets.items(), key=lambda item: (-item[1], item[0])))


def _returns(comparison):
    """Return address -> returns by day, of accounts whose rows begin with the account."""
    found = {}
    for wallet in comparison.wallets:
        made = wallet.results.frames
        lacks = made.fills[["closed_pnl", "fee", "start_position"]].isna().any(axis=None)
        if made.start_ms == 0 and len(made.fills) and len(made.ledger) and not lacks:
            returns = recomputed_performance._returns(wallet)
            found |= {made.user: returns} if returns else {}
    return found


def sentence_trading(comparison):
    fills = _fills(comparison)
    return {"traders": sum(count > 0 for count in fills), **_traded(comparison)}


def sentence_all_traded(comparison):
    assert all(_fills(comparison))
    return _traded(comparison)


def _traded(comparison):
    fills = _fills(comparison)
    return {"n": len(fills), "volume": _volume(comparison), "fills": sum(fills)}


def sentence_net(comparison):
    nets = _nets(comparison)
    (best, best_net), (worst, worst_net) = next(iter(nets.items())), list(nets.items())[-1]
    return {
        "winners": sum(net > 0 for net in nets.values()),
        "known": len(nets),
        "best": short_address(best),
        "best_net": best_net,
        "worst": short_address(worst),
        "worst_net": worst_net,
    }


def sentence_net_unknown(comparison):
    return {"unknown": len(comparison.wallets) - len(_nets(comparison))}


def sentence_returns_unknown(comparison):
    assert not _returns(comparison)
    return {}


def sentence_returns(comparison):
    totals = [np.prod([1 + each for each in one]) - 1 for one in _returns(comparison).values()]
    return {"known": len(totals), "lowest": min(totals), "highest": max(totals)}


def sentence_overlap(comparison):
    found = {
        wallet.results.frames.user: recomputed_performance.sentence_sharpe(wallet)
        for wallet in comparison.wallets
        if len(wallet.returns) > 2
    }
    first = max(found, key=lambda user: found[user]["value"])
    best = found.pop(first)
    overlaps = sum(
        one["low"] <= best["high"] and one["high"] >= best["low"] for one in found.values()
    )
    return {"first": short_address(first), "overlaps": overlaps, "others": len(found)}


def sentence_no_overlap(comparison):
    values = sentence_overlap(comparison)
    assert values["overlaps"] == 0
    return {"first": values["first"]}


def sentence_no_discoveries(comparison):
    values = sentence_discoveries(comparison)
    assert values.pop("found") == 0
    return values


def sentence_discoveries(comparison):
    """Benjamini and Hochberg: the largest number of accounts below the line through 0."""
    samples = [returns for returns in _returns(comparison).values() if len(returns) >= 20]
    p = sorted(stats.ttest_1samp(one, 0, alternative="greater").pvalue for one in samples)
    below = [rank for rank, each in enumerate(p, 1) if each <= 0.05 * rank / len(p)]
    return {"n": len(p), "found": max(below, default=0), "rate": 0.05}


def headline_accounts(comparison):
    fills = _fills(comparison)
    return {"n": len(fills), "traders": sum(count > 0 for count in fills)}


def headline_volume(comparison):
    return {"volume": _volume(comparison), "fills": sum(_fills(comparison))}


def headline_net(comparison):
    nets = _nets(comparison)
    return {"net": sum(nets.values()) if len(nets) == len(comparison.wallets) else None}
