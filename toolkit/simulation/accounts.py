"""Who trades: accounts of heavy-tailed sizes, each with a manner, coins and fees."""

from dataclasses import dataclass, field

import numpy as np

from toolkit.simulation.draws import address, pareto, stream
from toolkit.simulation.markets import DEXES, PERPS

__all__ = ["MAKER_MICRO", "MANNERS", "REBATES", "TIERS", "Account", "draw_accounts"]

MANNERS = ("trend", "reversion", "noise", "gambler", "hedger", "dormant")
"""How takers choose their positions; market makers are apart."""

MAKER_MICRO = 150
"""Fee of resting orders for everybody else, in millionths of the notional."""

_MANNER_SHARES = (0.26, 0.52, 0.78, 0.86, 0.94, 1.0)
TIERS = ((100_000_000, 300), (10_000_000, 350), (1_000_000, 400), (0, 450))
"""Volumes in USD, and the taker fee from there on, in millionths of the notional."""

REBATES = (-30, -20, -10)
"""Fees of market makers, in millionths of the notional."""

_ROUTED_SHARE = 0.4


@dataclass(slots=True)
class Account:
    """One account, as drawn: what it may do, not what it has done.

    Parameters
    ----------
    number : int
        Its index.
    address : str
        Its address.
    manner : str
        ``maker`` or one of `MANNERS`.
    funds : int
        First deposit, micro-dollars.
    leverage : float
        Largest notional over funds.
    coins : list of int
        Indices of the perps that it trades.
    activity : float
        How often it trades, relative to others.
    taker_micro, maker_micro : int
        Fees in millionths of the notional; negative is a rebate.
    builder : int or None
        Which builder it likes to route orders through.
    names_orders : bool
        Whether it gives its orders client order ids.
    pays_priority : bool
        Whether it sometimes pays priority gas.
    sub_account_of : int or None
        The account it belongs to.
    mode : int
        0 Standard, 1 DexAbstraction, 2 Unified, 3 PortfolioMargin.
    spot_share : int
        Percent of its funds that it keeps in its spot wallet; 0 where it trades no spot.
    wants_native : bool
        Whether it holds native tokens: to stake, to lend, to pay gas with.
    isolated : bool
        Whether each of its positions has a margin of its own, on every market.
    is_vault : bool
        Whether its money belongs to others.
    story : bool
        Whether it only does what its story tells; see `stories`.
    liquidated_by : str
        ``market`` or ``backstop`` where the story says how it is liquidated; else empty.
    on_fee_trial : bool
        Whether a part of the fees that it pays as a taker is held back.
    """

    number: int
    address: str
    manner: str
    funds: int
    leverage: float
    coins: list[int]
    activity: float
    taker_micro: int
    maker_micro: int
    builder: int | None
    names_orders: bool
    pays_priority: bool
    sub_account_of: int | None = field(default=None)
    mode: int = 0
    spot_share: int = 0
    wants_native: bool = False
    isolated: bool = False
    is_vault: bool = False
    story: bool = False
    liquidated_by: str = ""
    on_fee_trial: bool = False

    def cloid(self, oid: int) -> str | None:
        """Give the client order id of an order, if it names its orders."""
        return f"0x{oid * 7919:032x}" if self.names_orders else None

    @property
    def dexes(self) -> list[str]:
        """The dexes that it trades on, in the order of `DEXES`."""
        listed = {PERPS[coin].dex for coin in self.coins}
        return [dex for dex in DEXES if dex in listed]


def draw_accounts(seed: int, makers: int, takers: int, builders: int) -> list[Account]:
    """Draw market makers first, then everybody else, without their special roles."""
    rng = stream(seed, "accounts")
    sizes = pareto(rng, makers + takers)
    accounts = [_maker(seed, number, rng) for number in range(makers)]
    for number in range(makers, makers + takers):
        accounts.append(_taker(seed, number, float(sizes[number]), builders, rng))
    return accounts


def _maker(seed: int, number: int, rng: np.random.Generator) -> Account:
    return Account(
        number=number,
        address=address(seed, "account", str(number)),
        manner="maker",
        funds=int(rng.integers(20_000_000, 60_000_000)) * 10**6,
        leverage=3.0,
        coins=list(range(len(PERPS))),
        activity=0.0,
        taker_micro=TIERS[0][1],
        maker_micro=REBATES[number % len(REBATES)],
        builder=None,
        names_orders=number % 2 == 0,
        pays_priority=False,
    )


def _taker(seed: int, number: int, size: float, builders: int, rng: np.random.Generator) -> Account:
    shares = zip(MANNERS, _MANNER_SHARES, strict=True)
    luck = rng.random()
    manner = next(name for name, share in shares if luck <= share)
    funds = int(min(size * 4_000.0, 30_000_000.0) * 100.0) * 10**4
    routed = rng.random() < _ROUTED_SHARE
    return Account(
        number=number,
        address=address(seed, "account", str(number)),
        manner=manner,
        funds=funds,
        leverage=8.0 if manner == "gambler" else 0.5 + 2.0 * rng.random(),
        coins=_coins(rng),
        activity=0.0 if manner == "dormant" else 0.3 + float(pareto(rng, 1)[0]),
        taker_micro=next(fee for volume, fee in TIERS if funds // 10**5 >= volume),
        maker_micro=MAKER_MICRO,
        builder=int(rng.integers(0, builders)) if routed else None,
        names_orders=rng.random() < 0.5,
        pays_priority=rng.random() < 0.2,
    )


def _coins(rng: np.random.Generator) -> list[int]:
    """Choose two to seven perps, the often traded ones more often, each once."""
    tickets = [index for index, perp in enumerate(PERPS) for _ in range(perp.weight)]
    wanted = int(rng.integers(2, 8))
    chosen: list[int] = []
    while len(chosen) < wanted:
        coin = tickets[int(rng.integers(0, len(tickets)))]
        if coin not in chosen:
            chosen.append(coin)
    return sorted(chosen)
