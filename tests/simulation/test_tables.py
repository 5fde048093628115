"""The tables have the properties that a service needs: order, ties, ticks, determinism."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import fields, replace
from decimal import Decimal

import pytest

from tests.simulation.test_dexes import check_dex_values, sum_cash_by_dex
from tests.worlds import world_of
from toolkit.simulation import simulate
from toolkit.simulation.output.examples import STORY_TEXTS
from toolkit.simulation.world import compute_digest
from toolkit.times import DAY

GOLDEN = "001e9f46f182963fb820e9d66025bee5dd64ba8a7ff6df0fe7d194fb76768a46"


def test_fills_are_sorted(any_world):
    keys = [(fill.time, fill.tx_index) for _, fill in any_world.sources.fills]
    assert keys == sorted(keys)
    hashes: dict[tuple[int, int], set[str]] = {}
    for _, fill in any_world.sources.fills:
        hashes.setdefault((fill.time, fill.tx_index), set()).add(fill.hash)
    assert all(len(named) == 1 for named in hashes.values())


def test_rows_are_inside_history(any_world):
    sources = any_world.sources
    times = [fill.time for _, fill in sources.fills]
    times += [row.time for row in sources.funding]
    times += [update.time for _, update in sources.ledger]
    times += [approval.time for approval in sources.approvals]
    assert min(times) >= sources.start_ms
    assert max(times) <= sources.now_ms


def test_fills_come_in_bursts(any_world):
    fills = any_world.sources.fills
    busy = Counter(Counter((user, fill.time) for user, fill in fills).values())
    some = sum(count for size, count in busy.items() if 2 <= size <= 9)
    assert 0.3 < some / busy.total() < 0.5
    sizes = Counter((fill.time, fill.tx_index) for _, fill in fills if fill.crossed)
    assert max(sizes.values()) > 100


def test_demo_has_documented_size():
    """About 250 accounts, 30 days, 300,000 fills, 500,000 order events; bursts as recorded."""
    demo = world_of("demo")
    sources = demo.sources
    assert len(sources.fills) >= 300_000
    assert len(sources.orders) >= 500_000
    assert len(demo.expected) + len(demo.expected_mixed) == 250
    assert sources.now_ms - sources.start_ms == 30 * DAY
    busy = Counter(Counter((user, fill.time) for user, fill in sources.fills).values())
    some = sum(count for size, count in busy.items() if 2 <= size <= 9)
    assert 0.35 < some / busy.total() < 0.45
    sizes = Counter((fill.time, fill.tx_index) for _, fill in sources.fills if fill.crossed)
    assert sum(size > 100 for size in sizes.values()) >= 20


def test_demo_dex_values_equal_table_sums():
    check_dex_values(world_of("demo"), sum_cash_by_dex(world_of("demo")))


def test_prices_are_on_ticks(any_world):
    decimals = {
        asset.name: asset.sz_decimals
        for meta in any_world.sources.metas.values()
        for asset in meta.universe
    }
    for _, fill in any_world.sources.fills:
        if fill.coin not in decimals:
            continue
        px, sz = Decimal(fill.px).normalize(), Decimal(fill.sz).normalize()
        assert -px.as_tuple().exponent <= 6 - decimals[fill.coin]
        assert -sz.as_tuple().exponent <= decimals[fill.coin]
        assert len(px.as_tuple().digits) <= 5 or px == px.to_integral_value()
        assert sz > 0


def test_funding_is_sorted(any_world):
    keys = [(row.time, row.user, row.delta.coin) for row in any_world.sources.funding]
    assert keys == sorted(set(keys))


def test_seeds_give_different_worlds(world):
    assert world.digest() == simulate(7, "tiny").digest()
    assert world.digest() != world_of("tiny", 1).digest()


@pytest.mark.parametrize(("hash_seed", "threads"), [("0", "1"), ("4242", "8")])
def test_digest_equals_golden(hash_seed, threads):
    """If you change the world on purpose, change the golden digest."""
    program = "from toolkit.simulation import simulate; print(simulate(7, 'tiny').digest())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ
        | {
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == GOLDEN


def test_digest_covers_every_table(world):
    tables = {field.name: getattr(world.sources, field.name) for field in fields(world.sources)}
    few = {name: rows[:9] for name, rows in tables.items() if isinstance(rows, list)}
    sources = replace(world.sources, **few)
    whole = compute_digest(sources)
    for field in fields(sources):
        if field.name not in {"label", "simulated", "start_ms", "now_ms", "evidence", "history"}:
            value = getattr(sources, field.name)
            empty = None if field.name in {"depth", "spot_meta", "outcome_meta"} else type(value)()
            emptied = replace(sources, **{field.name: empty})
            assert compute_digest(emptied) != whole, field.name


def test_summary_lists_contents(world):
    summary = world.summary()
    assert set(summary) == {
        "seed", "size", "start_ms", "now_ms", "users", "builders", "validators", "perp_coins",
        "spot_coins", "dexes", "venues", "collateral_tokens", "digest",
    }  # fmt: skip
    assert len(summary["users"]) == 40
    assert summary["digest"] == world.digest() == GOLDEN
    assert all(summary.values())
    assert set(world.examples) == set(STORY_TEXTS)
    known = {*summary["users"], *summary["builders"], *summary["validators"]}
    assert set(world.examples.values()) <= known
    about = world.session_facts()
    assert list(about["stories"]) == list(about["examples"]) == list(STORY_TEXTS)
    assert {name: about[name] for name in summary} == summary
