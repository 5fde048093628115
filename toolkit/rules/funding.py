"""Funding payments: usdc = -szi * oracle price * rate, in millionths of a USD.

Source: the exchange's public documentation and recorded payments. For rows that sum several
payments see docs/live_service.md, section 5.
"""

from typing import Any, Final

USDC_DECIMALS: Final = 6
"""Decimals of a payment."""

LAST_DIGIT: Final = 10.0**-USDC_DECIMALS
"""The last digit of a payment, in USD."""

ZERO_HASH: Final = "0x" + "0" * 64
"""The hash of an event without a transaction, such as a payment."""


def round_payments(due: dict[int, int], decimals: int) -> dict[int, int]:
    """Round payments that sum to zero to millionths of a USD that still sum to zero.

    Each payment is rounded down. The missing millionths go, one each, to the accounts that lost
    most by it (the method of largest remainders). Each rounded payment is therefore less than a
    millionth of a USD from the exact one.

    Parameters
    ----------
    due : dict of int to int
        Account -> exact payment, in units of ``10**-decimals`` USD.
    decimals : int
        More than six.

    Returns
    -------
    dict of int to int
        Account -> payment in millionths of a USD.

    Examples
    --------
    >>> round_payments({1: 15 * 10**9, 2: -25 * 10**9, 3: 10**10}, 16)
    {1: 2, 2: -3, 3: 1}
    """
    unit = 10 ** (decimals - USDC_DECIMALS)
    payments = {account: exact // unit for account, exact in due.items()}
    lost = sorted((-(exact % unit), account) for account, exact in due.items())
    for _, account in lost[: -sum(payments.values())]:
        payments[account] += 1
    return payments


def implied_range(paid: Any, weight: Any, last_digit: Any) -> tuple[Any, Any]:
    """Return the lowest and the highest oracle price that a recorded payment allows.

    The function works on numbers, arrays and column expressions. A row that sums n payments
    implies the mean of their oracle prices (docs/live_service.md, section 5).

    Parameters
    ----------
    paid : number, array or expression
        The unsigned payment, USD.
    weight : number, array or expression
        The unsigned size times rate, times n; not 0.
    last_digit : number, array or expression
        n times `LAST_DIGIT`: a payment is less than a millionth of a USD from the exact one.

    Examples
    --------
    >>> low, high = implied_range(0.002513, 2.0 * 0.0000125, LAST_DIGIT)
    >>> round(low, 2), round(high, 2)
    (100.48, 100.56)

    Three payments in one row, together 2.9 USD on 0.1 BTC at 0.0003333:

    >>> low, high = implied_range(2.9, 0.1 * 0.0003333 * 3, 3 * LAST_DIGIT)
    >>> round((low + high) / 2, 2)
    29002.9
    """
    return (paid - last_digit) / weight, (paid + last_digit) / weight
