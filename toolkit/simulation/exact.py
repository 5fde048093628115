"""Exact numbers: scaled integers, their decimal text, and draws that are the same everywhere.

Money and sizes are Python integers in units of a power of ten, so that every sum is exact.
A price of a perp with ``sz_decimals`` has ``6 - sz_decimals`` decimals and a size has
``sz_decimals``, so price times size is a whole number of micro-dollars (`MICRO` decimals).

A draw uses only a seeded generator's whole numbers and uniform doubles, and on them only
``+ - * /`` and the square root, which IEEE 754 rounds exactly everywhere. Logarithms and
exponentials may differ in the last digit between mathematical libraries. Sums, mixtures and roots
of uniform numbers therefore replace normal, Student-t and Pareto draws.
"""

from functools import lru_cache
from hashlib import blake2b

import numpy as np

from toolkit.arrays import Floats
from toolkit.rules.funding import USDC_DECIMALS
from toolkit.rules.spot_cost import WEI

MICRO = USDC_DECIMALS
"""Decimals of money: one unit is a millionth of a dollar."""

ONE_TOKEN = 10**WEI
"""One token in units of a spot balance."""

WEI_PER_MICRO: int = 10 ** (WEI - MICRO)
"""Units of a spot balance in one micro-dollar."""


def money_text(micro: int) -> str:
    """Return micro-dollars as text, like `decimal_text` without its cache.

    >>> money_text(1_250_000), money_text(-7), money_text(0)
    ('1.25', '-0.000007', '0.0')
    """
    return decimal_text.__wrapped__(micro, MICRO)


@lru_cache(maxsize=1 << 16)  # several events, fills and funding rows contain the same size
def decimal_text(units: int, decimals: int) -> str:
    """Return a scaled integer as the exchange writes numbers: with at least one decimal.

    >>> decimal_text(1250, 3), decimal_text(-7, 2), decimal_text(40, 0), decimal_text(0, 6)
    ('1.25', '-0.07', '40.0', '0.0')
    """
    if not decimals:
        return f"{units}.0"
    digits = str(abs(units)).zfill(decimals + 1)
    sign = "-" if units < 0 else ""
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:].rstrip('0') or '0'}"


def parse_units(number: str, decimals: int) -> int:
    """Return the scaled integer that `decimal_text` wrote with as many decimals.

    >>> parse_units("1.25", 3), parse_units("-0.07", 2), parse_units("40.0", 0)
    (1250, -7, 40)
    """
    integer, _, fraction = number.partition(".")
    return int(integer + fraction[:decimals].ljust(decimals, "0"))


def rounded_share(amount: int, part: int, total: int) -> int:
    """Return ``amount * part / total``, rounded half away from zero.

    >>> rounded_share(5, 1, 2), rounded_share(-5, 1, 2), rounded_share(7, 1, 3)
    (3, -3, 2)
    """
    product = amount * part
    if product < 0:
        return -((-product * 2 + total) // (2 * total))
    return (product * 2 + total) // (2 * total)


def random_stream(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of one named part of a world; parts do not affect each other."""
    digest = blake2b("/".join((str(seed), *names)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def bell_draws(rng: np.random.Generator, *shape: int) -> Floats:
    """Draw bell-shaped numbers of mean 0 and variance 1: sums of four uniform numbers."""
    total = rng.random(shape)
    for _ in range(3):
        total = total + rng.random(shape)
    return np.asarray((total - 2.0) * np.sqrt(3.0))


def fat_tailed_draws(rng: np.random.Generator, *shape: int) -> Floats:
    """Draw fat-tailed numbers of mean 0 and variance near 1: a mixture of four scales."""
    scales = np.array([0.55, 0.55, 0.55, 0.55, 0.8, 0.8, 0.8, 1.2, 1.2, 2.6])
    return np.asarray(bell_draws(rng, *shape) * scales[rng.integers(0, len(scales), shape)])


def pareto_draws(rng: np.random.Generator, *shape: int) -> Floats:
    """Draw from the Pareto distribution of minimum 1 and exponent 4/3."""
    root = np.sqrt(1.0 - rng.random(shape))
    return np.asarray(1.0 / (root * np.sqrt(root)))


def party_address(seed: int, *names: str) -> str:
    """Return the address of a named party."""
    return "0x" + blake2b("/".join((str(seed), *names)).encode(), digest_size=20).hexdigest()


def transaction_hash(seed: int, number: int) -> str:
    """Return the hash of a transaction by its number."""
    return "0x" + blake2b(f"{seed}#{number}".encode(), digest_size=32).hexdigest()
