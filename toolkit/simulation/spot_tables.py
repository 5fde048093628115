"""What a service shows of spot and outcome markets at the end of history.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict

import msgspec

from toolkit.contract.records import (
    Outcome,
    OutcomeMeta,
    OutcomeQuestion,
    SpotBalance,
    SpotContext,
    SpotMeta,
    SpotPair,
    SpotState,
    SpotToken,
)
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.markets import OUTCOMES, PAIRS, PERPS, QUESTION, TOKENS, Pair
from toolkit.simulation.quantities import WEI, text, units
from toolkit.simulation.spot_fills import cost_unit
from toolkit.times import DAY, MINUTE

__all__ = ["add_spot_contexts", "outcome_meta", "spot_contexts", "spot_meta", "spot_states"]

_SPOT = [pair for pair in PAIRS if not pair.is_outcome]
_BY_BASE = {pair.base: pair for pair in PAIRS}
_SZ_DECIMALS = {"USDC": 8, **{pair.base: pair.sz_decimals for pair in _SPOT}}
_OTHER_SZ_DECIMALS = 2
_NAMES = {index: name for name, index in TOKENS.items()}
_OUTCOME_TOKENS = 100_000_000
"""Index of the outcome token +0; the token +<number> has this and the number."""

_QUESTION_NUMBER = 12
_COINS = [perp.coin for perp in PERPS]
_TRADES = ("Buy", "Sell")


def spot_meta() -> SpotMeta:
    """Return the tokens and the spot pairs, as `spotMeta` shows them.

    Tokens that nobody here holds or trades fill the places between the known indexes.
    """
    # ASSUMED: every token has 8 decimals on the chain; spot balances are counted in 1e-8.
    return SpotMeta(
        universe=[
            SpotPair(
                tokens=[TOKENS[pair.base], TOKENS["USDC"]],
                name=pair.coin,
                index=_pair_index(pair),
                is_canonical="/" in pair.coin,
            )
            for pair in _SPOT
        ],
        tokens=[_token(index) for index in range(max(TOKENS.values()) + 1)],
    )


def spot_contexts(exchange: Exchange) -> list[SpotContext]:
    """Return the state of every spot pair at the end of history, in the order of `spot_meta`."""
    volumes = _day_volumes(exchange)
    supplies: dict[str, int] = defaultdict(int)
    staked: dict[str, int] = defaultdict(int)
    for wallet in exchange.wallets:
        for token, holding in wallet.items():
            supplies[token] += holding.balance
            staked[token] += holding.staked
    return [
        _context(exchange, pair, *volumes[pair.coin], supplies[pair.base], staked[pair.base])
        for pair in _SPOT
    ]


def add_spot_contexts(one: SpotContext, other: SpotContext) -> SpotContext:
    """Return the state of a pair with the volumes and supplies of two worlds; prices are shared."""
    sums = {}
    for name in ("day_ntl_vlm", "day_base_vlm", "circulating_supply", "total_supply"):
        amounts = (units(getattr(context, name), WEI) for context in (one, other))
        sums[name] = text(sum(amounts), WEI)
    return msgspec.structs.replace(one, **sums)


def spot_states(exchange: Exchange) -> dict[str, SpotState]:
    """Return what each account holds at the end of history, and what it cost.

    Every account is in it; a token of which nothing is left is not.
    """
    return {
        account.address: SpotState(
            balances=[
                _balance(exchange, account.number, token)
                for token, holding in exchange.wallets[account.number].items()
                if holding.balance
            ]
        )
        for account in exchange.accounts
    }


def outcome_meta(settled: set[str]) -> OutcomeMeta:
    """Return the outcomes that are not settled, and their question.

    Parameters
    ----------
    settled : set of str
        Outcome markets that have ended.
    """
    open_ones = [outcome for outcome in OUTCOMES if outcome.sides[0] not in settled]
    fallback, *named = QUESTION
    question = OutcomeQuestion(
        question=_QUESTION_NUMBER,
        name="Which colour wins",
        description="One of three colours wins, or none of them.",
        fallback_outcome=fallback.number,
        named_outcomes=[outcome.number for outcome in named],
        settled_named_outcomes=[o.number for o in named if o not in open_ones],
    )
    return OutcomeMeta(
        outcomes=[
            Outcome(
                outcome=outcome.number,
                name=outcome.name,
                description=outcome.description,
                side_specs=[{"name": "Yes"}, {"name": "No"}],
            )
            for outcome in open_ones
        ],
        questions=[question] if fallback in open_ones else [],
    )


def _token(index: int) -> SpotToken:
    """Return one token; common clients look tokens up by position, so the list has no holes."""
    name = _NAMES.get(index, f"TOKEN{index}")
    return SpotToken(
        name=name,
        sz_decimals=_SZ_DECIMALS.get(name, _OTHER_SZ_DECIMALS),
        wei_decimals=WEI,
        index=index,
        token_id=f"0x{index + 1:032x}",
        is_canonical=name in ("USDC", "PURR"),
        evm_contract=None,
        full_name=None,
    )


def _balance(exchange: Exchange, who: int, token: str) -> SpotBalance:
    holding = exchange.wallets[who][token]
    pair = _BY_BASE.get(token)
    cost = 0
    if pair is not None:
        unit = cost_unit(pair)
        cost = holding.basis_now(unit).cost // unit
    # ASSUMED: the cost of dollar tokens, and of tokens that came in without a trade, is 0.
    return SpotBalance(
        coin=token,
        token=_token_index(token),
        total=text(holding.balance, WEI),
        hold="0.0",  # no spot order rests at the end of history
        entry_ntl=text(cost, WEI),
    )


def _token_index(token: str) -> int:
    return _OUTCOME_TOKENS + int(token[1:]) if token.startswith("+") else TOKENS[token]


def _pair_index(pair: Pair) -> int:
    return int(pair.coin[1:]) if pair.coin.startswith("@") else 0


def _context(
    exchange: Exchange, pair: Pair, usd: int, tokens: int, supply: int, staked: int
) -> SpotContext:
    """Return one state; a spot pair has the prices of the perp that it follows."""
    coin, prices = _COINS.index(pair.follows), exchange.prices
    last = prices.mid.shape[1] - 1
    day_ago = max(0, last - DAY // MINUTE)
    decimals = PERPS[coin].px_decimals
    mid = int(prices.bid[coin, last]) + int(prices.ask[coin, last])
    return SpotContext(
        prev_day_px=text(int(prices.mark[coin, day_ago]), decimals),
        day_ntl_vlm=text(usd, WEI),
        mark_px=text(int(prices.mark[coin, last]), decimals),
        mid_px=text(mid * 5, decimals + 1),
        circulating_supply=text(supply, WEI),
        coin=pair.coin,
        total_supply=text(supply + staked, WEI),
        day_base_vlm=text(tokens, WEI),
    )


def _day_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Return the last day's volume of each spot pair: 1e-8 USD and 1e-8 of the token."""
    pairs = {pair.coin: pair for pair in _SPOT}
    volumes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        if fill.crossed and fill.coin in pairs and fill.dir in _TRADES:
            pair = pairs[fill.coin]
            tokens = units(fill.sz, WEI)
            usd, before = volumes[fill.coin]
            usd += tokens * units(fill.px, pair.px_decimals) // cost_unit(pair)
            volumes[fill.coin] = usd, before + tokens
    return volumes
