"""Rows that are sorted in parts are the rows that are sorted at once."""

import random

import pyarrow as pa
import pytest

from toolkit.archive.compaction import ExternalSort, KeySample


def random_rows(seed, count):
    draw = random.Random(seed)
    return pa.table(
        {
            "subject": [draw.choice(["a", "b", "c" * draw.randrange(3)]) for _ in range(count)],
            "time": [draw.randrange(50) for _ in range(count)],
            "row": random.Random(seed + 1).sample(range(count), count),
            "text": [str(draw.random()) for _ in range(count)],
        }
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("part_rows", [7, 60, 5_000])
def test_sorted_parts_equal_sorted_rows(seed, part_rows):
    rows, key = random_rows(seed, 900), ["subject", "time", "row"]
    sample = KeySample(part_rows)
    batches = rows.to_batches(max_chunksize=110)
    for batch in batches:
        sample.add_keys(batch.select(key[:2]))
    with ExternalSort(key, sample) as sort:
        for batch in batches:
            sort.add_rows(batch)
        parts = list(sort.sorted_parts())
    expected = rows.sort_by([(name, "ascending") for name in key])
    assert pa.concat_tables(parts).to_pylist() == expected.to_pylist()
    if part_rows == 60:
        assert len(parts) > 5
        assert max(part.num_rows for part in parts) < 200
    # Rows of one key are never divided among parts.
    ends = [(part["subject"][-1], part["time"][-1]) for part in parts[:-1]]
    assert all(
        end != (part["subject"][0], part["time"][0])
        for end, part in zip(ends, parts[1:], strict=True)
    )


def test_sort_without_rows_has_no_parts():
    with ExternalSort(["time"], KeySample(10)) as sort:
        assert list(sort.sorted_parts()) == []
