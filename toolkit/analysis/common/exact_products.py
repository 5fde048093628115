"""Products of exact numbers: an amount times a price, with 18 decimals.

Both factors have up to 18 digits before and 18 after the decimal point. So their product has up to
36 decimals, more than a decimal of any engine can have next to the other digits. The product is
rounded to 18 decimals, halves up, as in `fixed_point.to_decimal`.
"""

from decimal import Decimal

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.analysis.common.frame_access import EXACT, Frame, NumberKind

_WHOLE = nw.Decimal(18, 0)
_PART = nw.Decimal(18, 18)
# DuckDB multiplies decimals of up to 18 digits with 64 bits, which are too few. Spark keeps all
# decimals of a product only if both factors together have up to 37 digits.
_LONG_WHOLE = nw.Decimal(19, 0)
_LONG_PART = nw.Decimal(19, 18)
_PRODUCT = nw.Decimal(37, 0)
_UNITS = 10**18
"""Units of the last decimal in 1."""


def add_product(
    frame: Frame, name: str, amount: nw.Expr, price: nw.Expr, kind: NumberKind
) -> Frame:
    """Add the column `name`: the amount times the price; missing if one of them is missing.

    Raise ValueError if an exact product of a frame in memory has too many digits.
    """
    if kind == "float":
        return frame.with_columns((amount * price.cast(nw.Float64())).alias(name))
    frame = frame.with_columns(_amount=amount, _factor=price)
    if isinstance(nw.to_native(frame), pa.Table):
        frame = _add_arrow_product(frame, name)
    else:
        factors = (nw.col(each).cast(EXACT) for each in ("_amount", "_factor"))
        frame = frame.with_columns(_product(*factors).alias(name))
    return frame.drop("_amount", "_factor")


def _add_arrow_product(frame: Frame, name: str) -> Frame:
    """Add the product of `_amount` and `_factor`, computed with 256 bits."""
    table: pa.Table = nw.to_native(frame)
    wide, exact = pa.decimal256(36, 18), pa.decimal128(36, 18)
    try:
        amount, factor = (table[each].cast(wide) for each in ("_amount", "_factor"))
        product = pc.round(pc.multiply(amount, factor), 18, "half_up").cast(exact)
    except pa.ArrowInvalid as error:
        raise ValueError(
            "an exact number has at most 18 digits before and 18 after the decimal point, but "
            "an amount, a price or their product has more. Round the column, or fetch it with "
            'numbers="float"'
        ) from error
    if name in table.column_names:
        table = table.drop_columns([name])
    made: Frame = nw.from_native(table.append_column(name, product))
    return made


def _product(amount: nw.Expr, price: nw.Expr) -> nw.Expr:
    """Return the product of two exact columns, on an engine other than Arrow.

    Each factor is the sum of a whole number and a part between 0 and 1. Three of the four products
    of these have at most 18 decimals. The product of the two parts has 36, so it is computed as a
    whole number of 1e-36, and then rounded.
    """
    # Polars would round a product to as many decimals as the factor with more decimals has.
    whole = [each.floor().cast(_WHOLE) for each in (amount, price)]
    part = [(each - floor).cast(_PART) for each, floor in zip((amount, price), whole, strict=True)]
    units = nw.lit(Decimal(_UNITS)).cast(nw.Decimal(19, 0))
    left, right = ((each * units).cast(_LONG_WHOLE) for each in part)
    half = nw.lit(Decimal(_UNITS // 2)).cast(_WHOLE)
    product = ((left * right).cast(_PRODUCT) + half).cast(_PRODUCT)
    product = (product - product % units).cast(_PRODUCT)
    tiny = nw.lit(Decimal(1).scaleb(-18)).cast(_PART)
    made = ((product * tiny).cast(_LONG_WHOLE) * tiny).cast(EXACT)
    pairs = (
        (whole[0].cast(_LONG_WHOLE), whole[1]),
        (whole[0].cast(_LONG_WHOLE), part[1]),
        (part[0].cast(_LONG_PART), whole[1]),
    )
    for one, other in pairs:
        made = (made + (one * other).cast(EXACT)).cast(EXACT)
    return made
