"""Every helper keeps the promises of its cases."""

import inspect
import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd
import polars
import pytest

import toolkit
from tests.analysis.examples import ME, as_numbers
from tests.engines import ENGINES, Engine
from tests.scale.case import BY_ACCOUNT, cases, topics
from toolkit.analysis.common import account_batches, frame_access
from toolkit.errors import MissingColumns, RepeatedRows

CASES = cases()
EVERY = pytest.mark.parametrize("case", CASES, ids=str)
ADDRESSED = [
    case
    for case in CASES
    if any(set(f) & {*frame_access.ADDRESSES} for f in case.frames(1).values())
]
KINDS = [(case, kind) for case in CASES for kind in case.numbers]
ON_KINDS = pytest.mark.parametrize(("case", "kind"), KINDS, ids=str)
ON_ENGINES = pytest.mark.parametrize(
    ("case", "kind", "name"),
    [(case, kind, name) for case, kind in KINDS for name in case.engines],
    ids=str,
)


@pytest.fixture(scope="module")
def engines():
    return {name: Engine(name) for name in ENGINES}


def given(case, kind="float", n=None):
    frames = case.frames(case.rows if n is None else n)
    return {name: as_numbers(frame, kind) for name, frame in frames.items()}


@cache
def in_pandas(case, kind="float", n=None):
    """Return the result of pandas, computed once for all tests that compare with it."""
    return case.run(given(case, kind, n))


def columns_of(case):
    return [(name, str(column)) for name, frame in given(case).items() for column in frame]


def sorted_by_keys(case, result):
    if not case.keys or not isinstance(result, pd.DataFrame):
        return result
    return result.sort_values(list(case.keys), ignore_index=True, kind="stable")


def close(value):
    """Compare rows; floats may differ in their last digits, since engines add in another order."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)
    if isinstance(value, Mapping):
        return {key: close(part) for key, part in value.items()}
    return value


def without_nan(rows):
    return [
        {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
        for row in rows
    ]


def rows_of(case, engine, result):
    rows = without_nan(engine.take(sorted_by_keys(case, result)))
    if case.keys:
        rows.sort(key=lambda row: [str(row[key]) for key in case.keys])
    return rows


@cache
def pandas_rows(case, kind="float", n=None):
    return rows_of(case, Engine("pandas"), in_pandas(case, kind, n))


def test_every_helper_has_a_case():
    public = {
        f"{topic}.{name}"
        for topic in topics()
        for name in getattr(toolkit, topic).__all__
        if inspect.isfunction(getattr(getattr(toolkit, topic), name))
    }
    assert public == {case.helper for case in CASES}


def test_topics_have_only_public_names():
    for topic in topics():
        module = getattr(toolkit, topic)
        assert dir(module) == sorted(module.__all__), topic


@EVERY
def test_required_columns_exist(case):
    have = set(columns_of(case))
    assert {(name, column) for name, all_ in case.needed.items() for column in all_} <= have


@pytest.mark.parametrize("n", [0, None], ids=["empty", "rows"])
@ON_ENGINES
def test_engines_agree(case, kind, name, n, engines):
    if name == "pandas":
        assert engines[name].owns(in_pandas(case, kind, n))
        return
    frames, engine = given(case, kind, n), engines[name]
    result = case.run({key: engine.give(frame) for key, frame in frames.items()})
    assert (engine if case.gives == "same" else engines["pandas"]).owns(result)
    found, wanted = rows_of(case, engine, result), pandas_rows(case, kind, n)
    assert len(found) == len(wanted)
    for item, other in zip(found, wanted, strict=True):
        assert list(item) == list(other)
        assert item == close(other)


@ON_KINDS
def test_empty_and_single_rows_keep_dtypes(case, kind):
    full = in_pandas(case, kind)
    for n in (0, 1):
        few = case.run({name: frame.iloc[:n] for name, frame in given(case, kind).items()})
        assert dict(few.dtypes) == dict(full.dtypes)
        assert list(few.columns) == list(full.columns)


@EVERY
def test_missing_column_is_named(case):
    for name, needed in case.needed.items():
        if needed:
            with pytest.raises(MissingColumns, match=f"^{name}: "):
                case.run(given(case) | {name: pd.DataFrame()})
    for name, column in columns_of(case):
        frames = given(case)
        frames[name] = frames[name].drop(columns=column)
        if column in case.needed.get(name, ()):
            with pytest.raises(MissingColumns, match=rf"^{name}: .*\b{column}\b"):
                case.run(frames)
            whole = given(case)[name]
            if whole[column].dtype == "float64":
                frames[name] = whole.astype({column: "str"})
                with pytest.raises(MissingColumns, match=rf"^{name}: column {column} is String"):
                    case.run(frames)
        else:
            assert column in _refused(case, frames, column)


def _refused(case, frames, column):
    """Return the column that a call requires only with these arguments."""
    with warnings.catch_warnings():
        # Without the column that names them, rows of several validators may be the same.
        warnings.simplefilter("ignore", RepeatedRows)
        try:
            case.run(frames)
        except MissingColumns as error:
            return str(error).split("missing")[0]
    return column


@ON_KINDS
def test_order_of_rows_does_not_matter(case, kind):
    frames = given(case, kind)
    result = in_pandas(case, kind)
    if case.helper != "pnl.audit":  # it returns the rows with the provenance that they have
        facts = result.attrs["toolkit"]
        assert (facts["helper"], set(facts["inputs"])) == (case.helper, set(frames))
    wanted = sorted_by_keys(case, result)
    before = {name: frame.sample(frac=1, random_state=3) for name, frame in frames.items()}
    shuffled = {name: frame.copy(deep=True) for name, frame in before.items()}
    found = sorted_by_keys(case, case.run(shuffled))
    pd.testing.assert_frame_equal(found, wanted, rtol=1e-9)
    for name, frame in before.items():
        pd.testing.assert_frame_equal(shuffled[name], frame)


def as_left_by_users(frame):
    """Texts as categories, times of another zone, an index of one label, named like a column."""
    result = frame.copy()
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.StringDtype):
            result[name] = frame[name].astype("category")
        elif isinstance(frame[name].dtype, pd.DatetimeTZDtype):
            result[name] = frame[name].dt.tz_convert("America/New_York")
    return result.set_axis(pd.Index([7] * len(result), name=str(result.columns[0])))


@EVERY
def test_index_zone_and_categories_do_not_matter(case):
    frames = given(case)
    wanted = sorted_by_keys(case, in_pandas(case))
    odd = {name: as_left_by_users(frame) for name, frame in frames.items()}
    kept = {name: frame.copy(deep=True) for name, frame in odd.items()}
    found = sorted_by_keys(case, case.run(odd))
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True), wanted, check_dtype=False, check_categorical=False, rtol=1e-9
    )
    for name, frame in odd.items():
        pd.testing.assert_frame_equal(frame, kept[name])


def checksummed(value):
    """Return an address with a checksum, and any other value unchanged."""
    return f"0x{value[2:].upper()}" if isinstance(value, str) and value[:2] == "0x" else value


def as_checksummed(frame):
    """Return the frame with a checksum in every other address."""
    result = frame.copy()
    for name in frame_access.ADDRESSES:
        if name in result:
            result[name] = [checksummed(v) if n % 2 else v for n, v in enumerate(result[name])]
            result[name] = result[name].astype(frame[name].dtype)
    return result


@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case in ADDRESSED for name in case.engines], ids=str
)
def test_address_case_is_ignored(case, name, engines):
    """Addresses in mixed case group, join and select like lower case.

    The result is in lower case, but for rows that are given back as they are (`pnl.audit`).
    """
    frames, engine = given(case), engines[name]
    arguments = {key: checksummed(value) for key, value in case.arguments.items()}
    odd = {key: engine.give(as_checksummed(frame)) for key, frame in frames.items()}
    found = rows_of(case, engine, replace(case, arguments=arguments).run(odd))
    wanted = pandas_rows(case)
    assert len(found) == len(wanted)
    for item, other in zip(found, wanted, strict=True):
        if case.helper == "pnl.audit":
            item["user"] = item["user"].lower()
        assert item == close(other)


@EVERY
def test_repeated_rows_warn_or_count_twice(case):
    if case.doubled is None:
        assert "twice" in (case.function.__doc__ or ""), "the docstring must say what happens"
        return
    frames = given(case)
    plain = sorted_by_keys(case, in_pandas(case))
    again = {name: pd.concat([frame, frame]) for name, frame in frames.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sorted_by_keys(case, case.run(again))
    case.doubled(plain, found)
    assert {item.category for item in caught} == ({RepeatedRows} if case.has_identity else set())


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", [case for case in CASES if case.has_identity], ids=str)
def test_repeated_rows_count_once_on_engines(case, name, engines):
    if name not in case.engines:
        return
    again = {key: pd.concat([frame, frame.iloc[::3]]) for key, frame in given(case).items()}
    with pytest.warns(RepeatedRows, match="counted once"):
        result = case.run({key: engines[name].give(frame) for key, frame in again.items()})
    found = rows_of(case, engines[name], result)
    assert found == [close(row) for row in pandas_rows(case)]


@EVERY
def test_many_rows_match_closed_form(case):
    """`make bench` repeats this with a million rows."""
    frames = case.frames(min(case.most, 100_000))
    case.at_scale(frames, case.run(frames))


def collected_rows(case, frames, monkeypatch):
    """Return the most rows that a call collects at once from Polars, apart from `_key`.

    The check for repeated rows collects this integer for each row.
    """
    counts = [0]
    collect = polars.LazyFrame.collect

    def count_rows(frame, *arguments, **options):
        result: Any = collect(frame, *arguments, **options)
        counts.append(0 if result.columns == ["_key"] else result.height)
        return result

    engine = Engine("polars lazy")
    given = {name: engine.give(frame) for name, frame in frames.items()}
    with monkeypatch.context() as patch:
        patch.setattr(polars.LazyFrame, "collect", count_rows)
        case.run(given)
    return max(counts)


@pytest.mark.parametrize("helper", sorted({case.helper for case in CASES}))
def test_collected_rows_match_documents(helper, monkeypatch):
    """What a helper has in memory is what the documents state."""
    growth = []
    for case in (case for case in CASES if case.helper == helper):
        few, many = (
            collected_rows(case, given(case, "float", n), monkeypatch)
            for n in (case.rows, 8 * case.rows)
        )
        growth.append(many - few)
    assert (max(growth) > 2) == (case.memory != "streams")


@pytest.mark.parametrize("helper", sorted(BY_ACCOUNT))
def test_one_account_is_collected_at_once(helper, monkeypatch):
    monkeypatch.setattr(account_batches, "ROWS_AT_ONCE", 1)
    case = next(case for case in CASES if case.helper == helper)
    frames = {
        name: pd.concat([frame, frame.replace({ME: ME[:-1] + "f"})], ignore_index=True)
        for name, frame in given(case).items()
    }
    assert collected_rows(case, frames, monkeypatch) == case.rows
