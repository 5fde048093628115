"""Section 7: splits, merges and negations in the cost basis of the legs."""

from collections import defaultdict
from decimal import Decimal

import pytest

from tests.reality.spot_chains import PRICE, TOKEN, chains
from tests.worlds import world_of
from toolkit.contract.records import Fill
from toolkit.rules.directions import CONVERSIONS
from toolkit.simulation.markets import OUTCOMES, QUESTION

USD = TOKEN * PRICE


SEEDS = (1, 2, 7)


@pytest.fixture(scope="module", params=SEEDS)
def world(request):
    return world_of("tiny", request.param)


@pytest.fixture(scope="module")
def conversions():
    """Return the fills of each conversion in several worlds."""
    found = defaultdict(list)
    for seed in SEEDS:
        for user, row in world_of("tiny", seed).sources.fills:
            if row.dir in CONVERSIONS:
                found[seed, row.hash].append((user, row))
    return list(found.values())


def fill(coin, side, px, sz, word, start="0.0"):
    return Fill(
        coin=coin, px=px, sz=sz, side=side, time=1, start_position=start, dir=word,
        closed_pnl="0.0", hash="0x1", oid=1, crossed=True, fee="0.0", tid=0, fee_token="USDC",
        twap_id=None, tx_index=0,
    )  # fmt: skip


def test_merge_after_sold_leg_by_hand():
    """Split 20, sell 20 No at 0.3, buy 20 No at 0.25, merge: the result is 6 - 5 USD."""
    rows = [
        fill("#10", "B", "0.5", "20.0", "Split Outcome"),
        fill("#11", "B", "0.5", "20.0", "Split Outcome"),
        fill("#11", "A", "0.3", "20.0", "Sell", "20.0"),
        fill("#11", "B", "0.25", "20.0", "Buy"),
        fill("#10", "A", "0.5", "20.0", "Merge Outcome", "20.0"),
        fill("#11", "A", "0.5", "20.0", "Merge Outcome", "20.0"),
    ]
    result = chains(("0x1", row) for row in rows)
    assert [row.closed for row in result["0x1", "#10"]] == [0, 0]
    assert [row.closed for row in result["0x1", "#11"]] == [0, -4 * USD, 0, 5 * USD]
    assert sum(row.cash for chain in result.values() for row in chain) == 1 * USD


def test_conversions_are_no_trades(conversions):
    for legs in conversions:
        assert len({user for user, _ in legs}) == 1
        for name in ("hash", "time", "tx_index", "oid", "sz", "dir", "px"):
            assert len({getattr(leg, name) for _, leg in legs}) == 1
        for _, leg in legs:
            assert (leg.tid, leg.fee, leg.crossed) == (0, "0.0", True)
            assert Decimal(leg.px) * len(legs) == 1
            assert Decimal(leg.sz) == int(Decimal(leg.sz)) > 0


def test_conversion_legs_are_correct(conversions):
    """Yes is side 0, No is side 1; the signs follow section 7."""
    yes = {outcome.sides[0] for outcome in QUESTION}
    for legs in conversions:
        came = {leg.coin for _, leg in legs if leg.side == "B"}
        left = {leg.coin for _, leg in legs if leg.side == "A"}
        pair = {coin[:-1] for coin in came | left}
        no = {coin[:-1] for coin in left if coin[-1] == "1"}
        expected = {
            "Split Outcome": not left and len(pair) == 1 and len(came) == 2,
            "Merge Outcome": not came and len(pair) == 1 and len(left) == 2,
            "Merge Question": not came and left == yes,
            "Negate Outcome": len(left) == len(no) == 1
            and came == yes - {coin + "0" for coin in no},
        }
        assert expected[legs[0][1].dir], legs
    assert {legs[0][1].dir for legs in conversions} == set(CONVERSIONS)


def test_tokens_pay_the_split_dollars(world):
    """In every outcome, all tokens together pay exactly the dollars that were split."""
    supply, locked = defaultdict(Decimal), defaultdict(Decimal)
    question = {outcome.number for outcome in QUESTION}
    for _, row in world.sources.fills:
        if not row.coin.startswith("#"):
            continue
        signed = Decimal(row.sz) if row.side == "B" else -Decimal(row.sz)
        supply[row.coin] += signed
        if row.dir in {"Split Outcome", "Merge Outcome", "Merge Question", "Settlement"}:
            group = "question" if int(row.coin[1:-1]) in question else row.coin[:-1]
            locked[group] += signed * Decimal(row.px)
    for outcome in OUTCOMES:
        yes, no = outcome.sides
        if outcome in QUESTION:
            others = [other.sides[1] for other in QUESTION if other != outcome]
            paid = supply[yes] + sum(supply[coin] for coin in others)
            assert paid == locked["question"] > 0
        else:
            assert supply[yes] == supply[no] == locked[yes[:-1]]
    assert supply["#1230"] == 0  # it is settled
    assert supply["#2070"] > 0


def test_settled_split_legs_close_half():
    """No wins: an untraded No leg closes 0.5 a token, and the Yes leg -0.5."""
    gains = set()
    for seed in SEEDS:
        for (_, coin), chain in chains(world_of("tiny", seed).sources.fills).items():
            if [row.fill.dir for row in chain] == ["Split Outcome", "Settlement"]:
                settled = chain[1].fill
                pays = Decimal(1 if coin == "#1231" else 0)
                assert Decimal(settled.px) == pays
                gains.add(pays - Decimal(settled.closed_pnl) / Decimal(settled.sz))
    assert gains == {Decimal("0.5")}
