"""Margin tiers of the simulated exchange, only from its answers: section 4."""

from fractions import Fraction

import pytest

from tests.worlds import world_of

MICRO = 10**6


@pytest.fixture(scope="module", params=[2, 7])
def world(request):
    return world_of("tiny", request.param)


def tiers_of(meta, asset):
    """Return the tiers of a table; an unlisted id below 50 is one tier with this leverage."""
    number = asset.margin_table_id
    listed = {
        key: [(Fraction(tier.lower_bound), tier.max_leverage) for tier in table.margin_tiers]
        for key, table in meta.margin_tables
    }
    assert number in listed or number < 50
    return listed.get(number, [(Fraction(0), number)])


def margin(notional, tiers):
    """Return notional * rate - deduction, as in docs/live_service.md."""
    rate, deduction = Fraction(1, 2 * tiers[0][1]), Fraction(0)
    for low, most in tiers[1:]:
        if notional < low:
            break
        deduction += low * (Fraction(1, 2 * most) - rate)
        rate = Fraction(1, 2 * most)
    return notional * rate - deduction


def tables(world):
    return {
        asset.name: tiers_of(meta, asset)
        for meta in world.sources.metas.values()
        for asset in meta.universe
    }


def required_margin(position, known):
    """Return the margin, rounded down to a micro-dollar."""
    whole = margin(Fraction(position.position_value), known[position.coin]) * MICRO
    return Fraction(whole.__floor__(), MICRO)


def test_first_tier_has_largest_leverage(world):
    known = tables(world)
    assert {len(tiers) for tiers in known.values()} >= {1, 2, 3}
    for meta in world.sources.metas.values():
        for asset in meta.universe:
            assert known[asset.name][0] == (0, asset.max_leverage)


def test_stated_maintenance_uses_margin_tiers(world):
    known, tiered = tables(world), set()
    for states in world.sources.states.values():
        for user, state in states.items():
            rows = [row.position for row in state.asset_positions]
            crossed = [row for row in rows if row.leverage.type == "cross"]
            total = sum((required_margin(position, known) for position in crossed), Fraction(0))
            assert Fraction(state.cross_maintenance_margin_used) == total
            tiered |= {
                user for p in crossed
                if len(known[p.coin]) > 1 and Fraction(p.position_value) > known[p.coin][1][0]
            }  # fmt: skip
    assert world.examples["LARGE"] in tiered


def test_liquidation_prices_follow_tiers(world):
    """At this price, the equity equals the tiered margin, up to one price step."""
    known, seen = tables(world), 0
    for states in world.sources.states.values():
        for state in states.values():
            rows = [row.position for row in state.asset_positions]
            crossed = [row for row in rows if row.leverage.type == "cross"]
            for row in rows:
                if row.liquidation_px is None:
                    continue
                alone = row.leverage.type == "isolated"
                mates = [] if alone else [other for other in crossed if other is not row]
                equity = Fraction(
                    row.margin_used if alone else state.cross_margin_summary.account_value
                )
                others = sum((required_margin(other, known) for other in mates), Fraction(0))
                size, px = Fraction(row.szi), Fraction(row.liquidation_px)
                moved = size * px - Fraction(row.position_value) * (1 if size > 0 else -1)
                left = equity - others + moved - margin(abs(size) * px, known[row.coin])
                digits = len(row.liquidation_px.partition(".")[2])
                step = Fraction(1, 10 ** min(digits, 6))
                assert abs(left) <= abs(size) * 2 * step + Fraction(2, MICRO)
                seen += 1
    assert seen > 50
