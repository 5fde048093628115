"""An account's equity over a period: what it is worth now, carried back through its tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pandas as pd

from toolkit.analysis import columns, pnl
from toolkit.analysis.origin import joint

__all__ = ["MARKED", "carried_back"]

MARKED: Final = (
    "perp account; positions marked at its own last fill, at the end at the exchange's mark"
)
"""How open positions are marked, in words."""

_NONE: Final = Decimal(0)


class _Fill(NamedTuple):
    ms: int
    coin: str
    signed: Decimal
    px: Decimal
    closed: Decimal


@dataclass
class _Open:
    """What is held of a coin, what was paid for it, and the last price known."""

    size: Decimal
    paid: Decimal
    mark: Decimal

    @property
    def gain(self) -> Decimal:
        return self.size * self.mark - self.paid if self.size else _NONE

    def take(self, fill: _Fill) -> None:
        self.size += fill.signed
        self.paid += fill.signed * fill.px + fill.closed
        self.mark = fill.px

    def undo(self, fill: _Fill) -> None:
        """Take a fill back; its price stands for the one before it, which nothing tells."""
        self.size -= fill.signed
        self.paid -= fill.signed * fill.px + fill.closed
        self.mark = fill.px


def carried_back(
    accounts: pd.DataFrame,
    positions: pd.DataFrame,
    fills: pd.DataFrame,
    funding: pd.DataFrame | None,
    ledger: pd.DataFrame,
    start_ms: int,
    end_ms: int,
    user: str,
) -> pd.DataFrame:
    """Carry the perp account's value now back through fills, fees, funding and ledger.

    Parameters
    ----------
    accounts, positions : DataFrame
        `tk.batch_clearinghouse_states` of the account now, of all dexes.
    fills, funding, ledger : DataFrame
        Of the account from `start_ms` to `end_ms`; without funding rows it is left out.
    start_ms, end_ms : int
        The period; its end is when the state was taken.
    user : str
        The account's address.

    Returns
    -------
    DataFrame
        One row at the start, one for the end of each hour, one at the end; exact decimals, USD:
        ``time``; ``realised`` (closed PnL, fees and funding) and ``flows`` (into the perp account),
        both since the start; ``unrealised`` of what is open then; ``equity``, the last one of which
        is what the service states; ``pnl``, what it changed by without flows; ``drawdown`` of that.

    Notes
    -----
    The accounting is `tk.pnl.reconcile`'s: between any two rows equity changes by realised PnL,
    the change of what is unrealised, and flows. Before its first event the equity is the residual
    of a reconciliation from an empty account: 0 where the tables explain all.
    """
    fills = _perps(fills)
    hours = pnl.attribution(fills, funding, ledger, by="hour", account=user)
    changes = zip(hours["net"], hours["ledger"], strict=True)
    made = dict(zip(_ms(hours["hour"]), changes, strict=True))
    left = _newest_first(fills)
    held = _at_start(positions, left)
    worth, gain = _sum(accounts["account_value"]), _sum(positions["unrealized_pnl"])
    cash = worth - gain - _sum(hours["net"]) - _sum(hours["ledger"])
    realised = flows = _NONE
    rows = [_point(start_ms, cash, held, realised, flows)]
    step = columns.HOUR_MS
    ends = [*range(start_ms // step * step + step, end_ms, step), end_ms]
    for begin, end in pairwise([start_ms // step * step, *ends]):
        while left and left[-1].ms < end + (end == end_ms):
            held[left[-1].coin].take(left.pop())
        for hour in {begin, end} if end == end_ms else {begin}:
            net, flow = (value or _NONE for value in made.get(hour, (_NONE, _NONE)))
            realised, flows = realised + net, flows + flow
        rows.append(_point(end, cash, held, realised, flows))
    rows[-1] = rows[-1] | {"unrealised": gain, "equity": worth}
    curve = _curve(rows)
    inputs = {"accounts": accounts, "fills": fills, "funding": funding, "ledger": ledger}
    curve.attrs["toolkit"] = joint(inputs)
    return curve


def _point(
    ms: int, cash: Decimal, held: dict[str, _Open], realised: Decimal, flows: Decimal
) -> dict[str, Any]:
    gain = _sum([one.gain for one in held.values()])
    equity = cash + realised + flows + gain
    return {"time": ms, "realised": realised, "unrealised": gain, "flows": flows, "equity": equity}


def _at_start(positions: pd.DataFrame, newest_first: Sequence[_Fill]) -> dict[str, _Open]:
    """Give what was held before the fills: what is held now, each of them taken back."""
    held = {}
    names = ("coin", "szi", "position_value", "unrealized_pnl")
    for coin, size, notional, gain in zip(*(positions[name] for name in names), strict=True):
        value = abs(notional).copy_sign(size)
        held[coin] = _Open(size, value - gain, value / size)
    for fill in newest_first:
        held.setdefault(fill.coin, _Open(_NONE, _NONE, _NONE)).undo(fill)
    return held


def _perps(fills: pd.DataFrame) -> pd.DataFrame:
    other = fills["coin"].str.contains(f"{columns.SPOT_COIN}|{columns.OUTCOME_COIN}")
    kept: pd.DataFrame = fills[~other.fillna(False).astype(bool)].reset_index(drop=True)
    return kept


def _newest_first(fills: pd.DataFrame) -> list[_Fill]:
    rows = zip(
        _ms(fills["time"]),
        *(fills[name] for name in ("coin", "side", "sz", "px", "closed_pnl")),
        strict=True,
    )
    made = [
        _Fill(ms, c, sz if side == "B" else -sz, px, closed) for ms, c, side, sz, px, closed in rows
    ]
    return sorted(made, key=lambda fill: fill.ms)[::-1]


def _curve(rows: list[dict[str, Any]]) -> pd.DataFrame:
    first, high = rows[0]["equity"], _NONE
    for row in rows:
        row["pnl"] = row["equity"] - first - row["flows"]
        high = max(high, row["pnl"])
        row["drawdown"] = row["pnl"] - high
    frame = pd.DataFrame(rows)
    return frame.assign(time=pd.to_datetime(frame["time"], unit="ms", utc=True))


def _ms(times: pd.Series) -> list[int]:
    return [int(one) for one in times.dt.as_unit("ms").astype("int64")]


def _sum(amounts: Sequence[Any] | pd.Series) -> Decimal:
    return sum((one for one in amounts if not pd.isna(one)), _NONE)
