"""Spot and outcome markets beyond the specification. docs/live_service.md, sections 7 and 9.

Records named ``...Row`` are not on the wire. They are the rows of frames of nested answers.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Record, Text


class SpotToken(Record, kw_only=True):
    """One token of the exchange."""

    name: Annotated[str, k.COIN("token symbol")]
    sz_decimals: Annotated[int, k.COUNT("decimal places of sizes")]
    wei_decimals: Annotated[int, k.COUNT("decimal places of amounts on the chain")]
    index: Annotated[int, k.ID("index of the token")]
    token_id: Annotated[str, k.TEXT("identifier, 0x and 32 hex digits")]
    is_canonical: Annotated[bool, k.FLAG("whether the exchange reserves the name for this token")]
    evm_contract: Annotated[
        object | None, k.NESTED("contract on the EVM; missing if there is none")
    ]
    full_name: Annotated[str | None, k.TEXT("long name")]
    deployer_trading_fee_share: Annotated[
        Text, k.RATE("share of trading fees that the deployer receives")
    ] = UNSET


class SpotPair(Record, kw_only=True):
    """One spot market."""

    tokens: Annotated[list[int], k.NESTED("indexes of the base and the quote token")]
    name: Annotated[str, k.COIN("name: BASE/QUOTE, or `@` and the index")]
    index: Annotated[int, k.ID("index of the pair")]
    is_canonical: Annotated[bool, k.FLAG("whether the exchange reserves the name for this market")]


class SpotMeta(Record, kw_only=True):
    """The tokens and the spot markets."""

    universe: Annotated[list[SpotPair], k.ROWS("spot markets")]
    tokens: Annotated[list[SpotToken], k.ROWS("tokens")]


class SpotContext(Record, kw_only=True):
    """The state of one spot market."""

    prev_day_px: Annotated[str, k.PRICE("price 24 hours ago")]
    day_ntl_vlm: Annotated[str, k.USD("volume of the last day")]
    mark_px: Annotated[str, k.PRICE("mark price")]
    mid_px: Annotated[str | None, k.PRICE("mid price; missing if the book is empty")]
    circulating_supply: Annotated[str, k.AMOUNT("circulating supply of the base token")]
    coin: Annotated[str, k.COIN("name of the spot market")]
    total_supply: Annotated[Text, k.AMOUNT("total supply of the base token")] = UNSET
    day_base_vlm: Annotated[Text, k.AMOUNT("volume of the last day, in the base token")] = UNSET


class SpotMarketRow(Record, kw_only=True):
    """One spot market with its state, as a row."""

    pair: Annotated[SpotPair, k.NESTED("the market")]
    context: Annotated[SpotContext, k.NESTED("", prefix="ctx_")]


class SpotBalance(Record, kw_only=True):
    """The balance of an account in one token."""

    coin: Annotated[str, k.COIN("token symbol")]
    # Tokens of outcome markets have none.
    token: Annotated[int, k.ID("index of the token", lacked=True)]
    total: Annotated[str, k.AMOUNT("balance")]
    hold: Annotated[str, k.AMOUNT("part of the balance that open orders reserve")]
    entry_ntl: Annotated[str, k.USD("cost of the balance")]


class SpotState(Record, kw_only=True):
    """The spot balances of an account."""

    balances: Annotated[list[SpotBalance], k.ROWS("one entry per token")]


class Outcome(Record, kw_only=True):
    """One outcome market."""

    outcome: Annotated[int, k.ID("index of the outcome")]
    name: Annotated[str, k.TEXT("name")]
    description: Annotated[str, k.TEXT("text of the outcome, with its terms")]
    side_specs: Annotated[list[object], k.NESTED("the two sides: names, and tokens if known")]


class OutcomeQuestion(Record, kw_only=True):
    """A question that several outcomes answer."""

    question: Annotated[int, k.ID("index of the question")]
    name: Annotated[str, k.TEXT("name")]
    description: Annotated[str, k.TEXT("text of the question, with its terms")]
    fallback_outcome: Annotated[int, k.ID("outcome that wins if no named outcome wins")]
    named_outcomes: Annotated[list[int], k.NESTED("indexes of the named outcomes")]
    settled_named_outcomes: Annotated[
        list[int] | UnsetType, k.NESTED("indexes of the named outcomes that are settled")
    ] = UNSET


class OutcomeMeta(Record, kw_only=True):
    """The outcome markets and their questions."""

    outcomes: Annotated[list[Outcome], k.ROWS("outcome markets")]
    questions: Annotated[list[OutcomeQuestion], k.ROWS("questions")]
