"""The markets of the simulated exchange: dexes, perps, spot pairs, outcomes, and ticks."""

from dataclasses import dataclass
from functools import cached_property

from toolkit.contract.dexes import coin_dex
from toolkit.rules.closed_pnl import price_decimals
from toolkit.rules.spot_cost import WEI
from toolkit.times import MINUTE

DEXES = ("", "eqx", "pre")
"""The native dex, ``eqx`` for equities (with limits), and ``pre`` for private firms."""


COLLATERAL = {"": "USDC", "eqx": "USDC", "pre": "USDH"}
"""Dex -> the token in which its positions are settled and its fees are paid.

One USDH is one dollar."""

NATIVE_TOKEN = "HYPE"

TOKENS = {"USDC": 0, "PURR": 1, "HYPE": 150, "UBTC": 197, "USDE": 235, "USDT0": 268, "USDH": 360}
"""Token of the spot wallets -> its index (docs/live_service.md, section 1)."""


MARGIN_TABLES = {
    52: ((0, 10), (200_000, 5)),
    54: ((0, 20), (500_000, 10)),
    55: ((0, 25), (400_000, 15)),
    56: ((0, 40), (600_000, 20), (1_800_000, 10)),
}
"""Id -> lower bound in USD and largest leverage of each tier (docs/live_service.md, section 4).

The bounds are lower than those of the live exchange, because its positions are larger."""

_USD = 10**6


@dataclass(frozen=True)
class Perp:
    """The properties of one perpetual.

    - ``coin``: its name in requests; a builder-deployed perp has the dex in front
    - ``sz_decimals``, ``max_leverage``: as in `meta`
    - ``start_px``: price at the start of history, USD
    - ``daily_vol``, ``beta``: standard deviation of a day's own return, and the share of the common
      factor
    - ``half_spread_bps``, ``depth_usd``: typical half spread, and the depth of one side within 10
      bps of the best price
    - ``weight``: how often it is traded, relative to the others
    - ``only_isolated``, ``delisted``: as in `meta`
    - ``margin_table``: id of its margin table; 0 if it has one tier
    - ``margin_mode``: as in `meta`; empty if nothing is restricted
    """

    coin: str
    sz_decimals: int
    max_leverage: int
    start_px: float
    daily_vol: float
    beta: float
    half_spread_bps: float
    depth_usd: float
    weight: int
    only_isolated: bool = False
    delisted: bool = False
    margin_table: int = 0
    margin_mode: str = ""

    @cached_property
    def px_decimals(self) -> int:
        """Decimals of its prices."""
        return price_decimals(self.sz_decimals)

    @cached_property
    def tiers(self) -> tuple[tuple[int, int], ...]:
        """Lower bound in micro-dollars, and largest leverage, of each margin tier."""
        tiers = MARGIN_TABLES.get(self.margin_table, ((0, self.max_leverage),))
        return tuple((low * _USD, most) for low, most in tiers)

    @cached_property
    def dex(self) -> str:
        """The dex that lists it; ``""`` is the native one."""
        return coin_dex(self.coin)


PERPS = (
    Perp("BTC", 5, 40, 108_250.0, 0.018, 1.0, 0.2, 2_000_000.0, 220, margin_table=56),
    Perp("ETH", 4, 25, 4_390.0, 0.022, 1.3, 0.3, 1_200_000.0, 180, margin_table=55),
    Perp("SOL", 2, 20, 204.0, 0.026, 1.4, 0.6, 400_000.0, 120, margin_table=54),
    Perp("HYPE", 2, 10, 44.5, 0.03, 1.3, 0.9, 250_000.0, 100, margin_table=52),
    Perp("XRP", 0, 20, 2.81, 0.026, 1.2, 1.0, 180_000.0, 60, margin_table=54),
    Perp("DOGE", 0, 10, 0.2145, 0.032, 1.4, 1.2, 100_000.0, 45, margin_table=52),
    Perp("BNB", 3, 10, 862.0, 0.018, 0.9, 1.0, 90_000.0, 35, margin_table=52),
    Perp("SUI", 1, 10, 3.31, 0.034, 1.5, 1.5, 50_000.0, 35),
    Perp("LINK", 1, 10, 23.4, 0.03, 1.4, 1.6, 40_000.0, 28),
    Perp("AVAX", 2, 10, 23.9, 0.032, 1.4, 1.8, 30_000.0, 24),
    Perp("ARB", 1, 10, 0.512, 0.034, 1.5, 2.5, 12_000.0, 18),
    Perp("kPEPE", 0, 10, 0.009871, 0.04, 1.6, 3.0, 9_000.0, 18),
    Perp("FARTCOIN", 1, 5, 0.7604, 0.055, 1.7, 4.0, 4_000.0, 14),
    Perp("PURR", 0, 10, 0.17635, 0.05, 1.2, 9.0, 500.0, 8, only_isolated=True),
    Perp("MYRO", 0, 3, 0.02231, 0.06, 1.0, 14.0, 150.0, 4, only_isolated=True, delisted=True,
         margin_mode="strictIsolated"),
    Perp("HPOS", 0, 10, 0.0641, 0.06, 1.0, 16.0, 90.0, 5, only_isolated=True,
         margin_mode="noCross"),
    Perp("eqx:TSLA", 3, 10, 334.0, 0.024, 0.5, 1.5, 60_000.0, 30),
    Perp("eqx:NVDA", 3, 10, 174.2, 0.02, 0.5, 1.4, 60_000.0, 30),
    Perp("eqx:GOLD", 4, 20, 3_447.0, 0.009, 0.1, 0.8, 80_000.0, 18),
    Perp("pre:OPENAI", 2, 5, 512.0, 0.03, 0.4, 6.0, 2_500.0, 12, only_isolated=True,
         margin_mode="strictIsolated"),
    Perp("pre:SPACEX", 3, 5, 212.5, 0.025, 0.3, 8.0, 1_200.0, 9, only_isolated=True),
)  # fmt: skip
"""Every perpetual, in the order of its index."""

COINS = [perp.coin for perp in PERPS]
"""The name of every perpetual."""


@dataclass(frozen=True)
class Pair:
    """A spot pair or an outcome market; both are quoted in USDC.

    - ``coin``: its name in requests: ``PURR/USDC``, ``@`` and an index, or ``#`` and an outcome
    - ``base``: the token that is bought and sold
    - ``sz_decimals``: decimals of sizes
    - ``follows``: the perp that has the same price; empty for outcomes
    - ``venue``: the venue of an outcome market; empty for a spot pair, and for an outcome market
      that validators deployed
    """

    coin: str
    base: str
    sz_decimals: int
    follows: str = ""
    venue: str = ""

    @cached_property
    def px_decimals(self) -> int:
        """Decimals of its prices."""
        return WEI - self.sz_decimals

    @cached_property
    def unit(self) -> int:
        """The smallest size in 1e-8 tokens; also 1e-8 USD in the units of costs.

        Both are the same number, because a price times a size has 8 decimals.
        """
        return int(10**self.px_decimals)

    @property
    def is_outcome(self) -> bool:
        """Whether it is an outcome market, which finally pays one dollar or nothing."""
        return self.coin.startswith("#")


@dataclass(frozen=True, slots=True)
class OutcomeMarket:
    """One outcome: its two tokens together pay a dollar.

    - ``number``: its index; side 0 (Yes) trades as ``#<number>0``, side 1 (No) as ``#<number>1``
    - ``name``, ``description``: as in `outcomeMeta`
    - ``venue``: the deployer; empty if validators deployed it
    """

    number: int
    name: str
    description: str
    venue: str = ""

    @property
    def sides(self) -> tuple[str, str]:
        """The names of its two markets in requests, Yes first."""
        return f"#{self.number}0", f"#{self.number}1"


OUTCOMES = (
    OutcomeMarket(123, "BTC above 120000", "Settles on the mark price at its end.", "PMX"),
    OutcomeMarket(207, "Rate cut in December", "Settles on the announcement.", "KX"),
    OutcomeMarket(331, "Fallback", "None of the named ones wins."),
    OutcomeMarket(332, "Red", "Red wins."),
    OutcomeMarket(333, "Green", "Green wins."),
    OutcomeMarket(334, "Blue", "Blue wins."),
)
"""Every outcome."""

QUESTION = tuple(outcome for outcome in OUTCOMES if outcome.number > 330)
"""The outcomes of the only question: exactly one happens; the first is the fallback."""

PAIRS = (
    Pair("PURR/USDC", "PURR", 0, "PURR"),
    Pair("@107", "HYPE", 2, "HYPE"),
    Pair("@142", "UBTC", 5, "BTC"),
    *(
        Pair(coin, f"+{coin[1:]}", 0, venue=outcome.venue)
        for outcome in OUTCOMES
        for coin in outcome.sides
    ),
)
"""Every spot pair, and both markets of every outcome."""

SPOT_PAIRS = tuple(pair for pair in PAIRS if not pair.is_outcome)

FOLLOWED_PERPS = {pair.base: COINS.index(pair.follows) for pair in SPOT_PAIRS}
"""Token of a spot pair -> index of the perp that has its price."""

VENUES = ("PMX", "KX")


def tick_size(px: int, px_decimals: int) -> int:
    """Return the step of legal prices around a price, both in units of 10**-px_decimals.

    A price has at most five significant figures, but whole numbers are always legal.

    >>> tick_size(1_082_500, 1), tick_size(23_412, 4), tick_size(1_234_567, 4)
    (10, 1, 100)
    """
    return int(10 ** max(0, min(len(str(px)) - 5, px_decimals)))


def delisting_time(start_ms: int, end_ms: int) -> int:
    """Return the end of the delisted perp: after three quarters of history.

    >>> delisting_time(0, 80 * MINUTE) == 67 * MINUTE
    True
    """
    return start_ms + (end_ms - start_ms) * 3 // 4 + 7 * MINUTE
