"""`aggregateByTime`: the partial fills of one order become one row.

Clarifications, "Small decisions". The fills of a crossing order with the same oid, coin, side
and time are one; those of a resting order only within one transaction.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import msgspec

from toolkit.contract.records import Fill
from toolkit.rules.directions import CONVERSIONS

__all__ = ["StoredFill", "merged"]

StoredFill: Final = msgspec.defstruct(
    "StoredFill",
    [
        (one.name, one.type | msgspec.UnsetType, msgspec.UNSET)
        for one in msgspec.structs.fields(Fill)
    ],
    rename={one.name: one.encode_name for one in msgspec.structs.fields(Fill)},
    kw_only=True,
)
"""A fill as it is stored: recorded ones lack fields that the specification asks for."""

_SUMMED: Final = ("sz", "closed_pnl", "fee", "builder_fee", "deployer_fee")
_EXACT: Final = Context(prec=60)
# ASSUMED: the mean price of merged fills is written with 17 significant digits, at most 18 of
# them after the point.
_PRICE: Final = Context(prec=17, rounding=ROUND_HALF_EVEN)
_LAST_DIGIT: Final = Decimal("1e-18")


def merged(fills: Sequence[Fill]) -> list[Fill]:
    """Merge the fills of one account and one millisecond.

    Parameters
    ----------
    fills : sequence of Fill
        In the order of execution, all with the same time.

    Returns
    -------
    list of Fill
        In the order of their first fills. Sizes, fees and closed PnL are exact sums, the price
        is the mean weighted by size, everything else is the first fill's.
    """
    groups: dict[tuple[Any, ...], list[Fill]] = {}
    for fill in fills:
        key: tuple[Any, ...] = (fill.oid, fill.coin, fill.side, fill.crossed)
        is_conversion = fill.dir in CONVERSIONS  # it takes, but it is no trade
        if is_conversion or not fill.crossed:
            key += (fill.tx_index, fill.hash, is_conversion)
        groups.setdefault(key, []).append(fill)
    return [group[0] if len(group) == 1 else _one(group) for group in groups.values()]


def _one(group: Sequence[Fill]) -> Fill:
    changes: dict[str, Any] = {"px": _mean_price(group)}
    for name in _SUMMED:
        amounts = [value for one in group if (value := getattr(one, name)) is not msgspec.UNSET]
        if amounts:
            changes[name] = plain(_sum(map(Decimal, amounts)))
    return msgspec.structs.replace(group[0], **changes)


def _mean_price(group: Sequence[Fill]) -> str:
    size = _sum(Decimal(one.sz) for one in group)
    notional = _sum(_EXACT.multiply(Decimal(one.px), Decimal(one.sz)) for one in group)
    if not size:
        return group[0].px
    price = _PRICE.divide(notional, size)
    rounded = price.quantize(_LAST_DIGIT, context=_EXACT)
    return plain(price if price == rounded else rounded)


def _sum(amounts: Any) -> Decimal:
    total = Decimal(0)
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total


def plain(number: Decimal) -> str:
    """Write a decimal as the wire does: no exponent, no trailing zeros, one digit after the point.

    Examples
    --------
    >>> plain(Decimal("12.500")), plain(Decimal("1E+2")), plain(Decimal("-0.0"))
    ('12.5', '100.0', '0.0')
    """
    text = f"{number:f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0") or "0"
    return "0.0" if not number else f"{whole}.{fraction}"
