"""Aggregation of fills (`aggregateByTime`): the partial fills of one order become one row.

Fills of a crossing order are one row if oid, coin, side and time are the same. Fills of a resting
order are one row only within one transaction.
"""

import functools
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import msgspec

from toolkit.contract.records import Fill
from toolkit.rules.directions import CONVERSIONS
from toolkit.service.decimals import format_decimal

StoredFill: Final = msgspec.defstruct(
    "StoredFill",
    [
        (
            field.name,
            (msgspec.Raw if field.name == "liquidation" else field.type | None) | msgspec.UnsetType,
            msgspec.UNSET,
        )
        for field in msgspec.structs.fields(Fill)
    ],
    rename={field.name: field.encode_name for field in msgspec.structs.fields(Fill)},
    kw_only=True,
    forbid_unknown_fields=True,
)
"""A fill as the store keeps it. Any field of a recorded fill may be absent or null."""

_SUMMED: Final = ("sz", "closed_pnl", "fee", "builder_fee", "deployer_fee")
_EXACT: Final = Context(prec=60)
# ASSUMED: The mean price of merged fills has 17 significant digits and at most 18 decimal places.
_PRICE: Final = Context(prec=17, rounding=ROUND_HALF_EVEN)
_LAST_DIGIT: Final = Decimal("1e-18")


def aggregate_fills(fills: Sequence[Fill]) -> list[Fill]:
    """Return the fills of one account and one millisecond, merged by order.

    Parameters
    ----------
    fills : sequence of Fill
        Fills in the order of execution, all with the same time.

    Returns
    -------
    list of Fill
        In the order of the first fill of each group. Sizes, fees and closed PnL are exact sums.
        The price is the mean weighted by size. All other fields are those of the first fill.
    """
    groups: dict[tuple[Any, ...], list[Fill]] = {}
    for fill in fills:
        key: tuple[Any, ...] = (fill.oid, fill.coin, fill.side, fill.crossed)
        is_conversion = fill.dir in CONVERSIONS  # it crosses, but it is not a trade
        if is_conversion or not fill.crossed:
            key += (fill.tx_index, fill.hash, is_conversion)
        groups.setdefault(key, []).append(fill)
    return [group[0] if len(group) == 1 else _merge_group(group) for group in groups.values()]


def _merge_group(group: Sequence[Fill]) -> Fill:
    changes: dict[str, Any] = {}
    size = _exact_sum(Decimal(fill.sz) for fill in group)
    if size:
        products = (_EXACT.multiply(Decimal(fill.px), Decimal(fill.sz)) for fill in group)
        price = _PRICE.divide(_exact_sum(products), size)
        rounded = price.quantize(_LAST_DIGIT, context=_EXACT)
        changes["px"] = format_decimal(price if price == rounded else rounded)
    for name in _SUMMED:
        amounts = [value for fill in group if (value := getattr(fill, name)) is not msgspec.UNSET]
        if None in amounts:  # a sum is missing if a part of it is missing
            changes[name] = None
        elif amounts:
            changes[name] = format_decimal(_exact_sum(map(Decimal, amounts)))
    return msgspec.structs.replace(group[0], **changes)


def _exact_sum(amounts: Iterable[Decimal]) -> Decimal:
    return functools.reduce(_EXACT.add, amounts, Decimal(0))
