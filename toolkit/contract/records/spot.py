"""Spot and outcome markets beyond the specification. docs/live_service.md, sections 7 and 9.

Records named ``...Row`` are not on the wire. They are the rows of frames of nested answers.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract.records.record import Record, Text
from toolkit.contract.value_kinds import (
    AMOUNT,
    COIN,
    COUNT,
    FLAG,
    ID,
    NESTED,
    PRICE,
    RATE,
    ROWS,
    TEXT,
    USD,
)


class SpotToken(Record, kw_only=True):
    """One token of the exchange."""

    name: Annotated[str, COIN("token symbol")]
    sz_decimals: Annotated[int, COUNT("decimal places of sizes")]
    wei_decimals: Annotated[int, COUNT("decimal places of amounts on the chain")]
    index: Annotated[int, ID("index of the token")]
    token_id: Annotated[str, TEXT("identifier, 0x and 32 hex digits")]
    is_canonical: Annotated[bool, FLAG("whether the exchange reserves the name for this token")]
    evm_contract: Annotated[object | None, NESTED("contract on the EVM; missing if there is none")]
    full_name: Annotated[str | None, TEXT("long name")]
    deployer_trading_fee_share: Annotated[
        Text, RATE("share of trading fees that the deployer receives")
    ] = UNSET


class SpotPair(Record, kw_only=True):
    """One spot market."""

    tokens: Annotated[list[int], NESTED("indexes of the base and the quote token")]
    name: Annotated[str, COIN("name: BASE/QUOTE, or `@` and the index")]
    index: Annotated[int, ID("index of the pair")]
    is_canonical: Annotated[bool, FLAG("whether the exchange reserves the name for this market")]


class SpotMeta(Record, kw_only=True):
    """The tokens and the spot markets."""

    universe: Annotated[list[SpotPair], ROWS("spot markets")]
    tokens: Annotated[list[SpotToken], ROWS("tokens")]


class SpotContext(Record, kw_only=True):
    """The state of one spot market."""

    prev_day_px: Annotated[str, PRICE("price 24 hours ago")]
    day_ntl_vlm: Annotated[str, USD("volume of the last day")]
    mark_px: Annotated[str, PRICE("mark price")]
    mid_px: Annotated[str | None, PRICE("mid price; missing if the book is empty")]
    circulating_supply: Annotated[str, AMOUNT("circulating supply of the base token")]
    coin: Annotated[str, COIN("name of the spot market")]
    total_supply: Annotated[Text, AMOUNT("total supply of the base token")] = UNSET
    day_base_vlm: Annotated[Text, AMOUNT("volume of the last day, in the base token")] = UNSET


class SpotMarketRow(Record, kw_only=True):
    """One spot market with its state, as a row."""

    pair: Annotated[SpotPair, NESTED("the market")]
    context: Annotated[SpotContext, NESTED("", prefix="ctx_")]


class SpotBalance(Record, kw_only=True):
    """The balance of an account in one token."""

    coin: Annotated[str, COIN("token symbol")]
    token: Annotated[
        int, ID("index of the token", missing_reason="tokens of outcome markets have none")
    ]
    total: Annotated[str, AMOUNT("balance")]
    hold: Annotated[str, AMOUNT("part of the balance that open orders reserve")]
    entry_ntl: Annotated[str, USD("cost of the balance")]


class SpotState(Record, kw_only=True):
    """The spot balances of an account."""

    balances: Annotated[list[SpotBalance], ROWS("one entry per token")]


class Outcome(Record, kw_only=True):
    """One outcome market."""

    outcome: Annotated[int, ID("index of the outcome")]
    name: Annotated[str, TEXT("name")]
    description: Annotated[str, TEXT("text of the outcome, with its terms")]
    side_specs: Annotated[list[object], NESTED("the two sides: names, and tokens if known")]


class OutcomeQuestion(Record, kw_only=True):
    """A question that several outcomes answer."""

    question: Annotated[int, ID("index of the question")]
    name: Annotated[str, TEXT("name")]
    description: Annotated[str, TEXT("text of the question, with its terms")]
    fallback_outcome: Annotated[int, ID("outcome that wins if no named outcome wins")]
    named_outcomes: Annotated[list[int], NESTED("indexes of the named outcomes")]
    settled_named_outcomes: Annotated[
        list[int] | UnsetType, NESTED("indexes of the named outcomes that are settled")
    ] = UNSET


class OutcomeMeta(Record, kw_only=True):
    """The outcome markets and their questions."""

    outcomes: Annotated[list[Outcome], ROWS("outcome markets")]
    questions: Annotated[list[OutcomeQuestion], ROWS("questions")]
