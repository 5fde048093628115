"""Seeded randomness that is the same on every machine.

Only the generator's whole numbers and uniform doubles are used, and on them only ``+ - * /`` and
the square root, which IEEE 754 rounds exactly everywhere. Logarithms and exponentials may differ
in the last digit between mathematical libraries. Sums, mixtures and roots of uniform numbers
therefore replace normal, Student-t and Pareto draws.
"""

from hashlib import blake2b

import numpy as np

from toolkit.arrays import Floats


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
