"""Every helper keeps the promises of its cases."""

import inspect
import re
import warnings
from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd
import polars
import pytest

import toolkit
from tests.scale.case import cases, topics
from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.prepare.door import ADDRESSES

CASES = cases()


@cache
def plain_result(case):
    """Return the result of the case's rows, in an order that does not depend on theirs."""
    return in_order(case, case.run(case.frames(case.rows)))


def in_order(case, result):
    if not case.keys:
        return result
    return result.sort_values(list(case.keys), ignore_index=True, kind="stable")


def assert_same(case, found, **options):
    pd.testing.assert_frame_equal(in_order(case, found), plain_result(case), rtol=1e-9, **options)


def close(value):
    """Compare rows; floats may differ in their last digits, as sums may be in another order."""
    if isinstance(value, float):
        return pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True)
    if isinstance(value, Mapping):
        return {key: close(part) for key, part in value.items()}
    return value


def test_every_helper_has_a_case():
    modules = {topic: getattr(toolkit, topic) for topic in topics()}
    for topic, module in modules.items():
        assert dir(module) == sorted(module.__all__), topic
    assert {case.helper for case in CASES} == {
        f"{topic}.{name}"
        for topic, module in modules.items()
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_helper_keeps_promises(case):
    check_few_rows(case)
    check_disorder(case)
    check_repeated_rows(case)
    check_missing_columns(case)


def check_few_rows(case):
    """An empty frame, and one row, give the columns and dtypes of many rows, and provenance."""
    whole = plain_result(case)
    frames = case.frames(case.rows)
    if case.helper != "pnl.audit":  # it returns the rows with the provenance that they have
        facts = whole.attrs["toolkit"]
        assert (facts["helper"], set(facts["inputs"])) == (case.helper, set(frames))
    for n in (0, 1):
        few = case.run({name: frame.iloc[:n] for name, frame in frames.items()})
        assert list(few.dtypes.items()) == list(whole.dtypes.items()), f"{n} rows"


def check_disorder(case):
    """What users may do to rows changes neither the result nor their frames.

    Addresses of the result are in lower case, but for rows that are given back as they are.
    """
    given = {
        name: as_left_by_users(frame.sample(frac=1, random_state=3))
        for name, frame in case.frames(case.rows).items()
    }
    kept = {name: frame.copy(deep=True) for name, frame in given.items()}
    arguments = {name: checksummed(value) for name, value in case.arguments.items()}
    found = case.table(case.function(**given, **arguments))
    if case.helper == "pnl.audit":
        found["user"] = found["user"].str.lower()
    assert_same(case, found.reset_index(drop=True), check_dtype=False, check_categorical=False)
    for name, frame in given.items():
        pd.testing.assert_frame_equal(frame, kept[name])


def as_left_by_users(frame):
    """Return texts as categories, every other address with a checksum, times of another zone.

    The index has one label, and is named like a column.
    """
    result = frame.copy()
    for name in frame.columns:
        if name in ADDRESSES:
            some = np.arange(len(frame)) % 2 == 1
            result[name] = frame[name].mask(some, frame[name].map(checksummed))
        if isinstance(frame[name].dtype, pd.StringDtype):
            result[name] = result[name].astype("category")
        elif isinstance(frame[name].dtype, pd.DatetimeTZDtype):
            result[name] = frame[name].dt.tz_convert("America/New_York")
    return result.set_axis(pd.Index([7] * len(result), name=str(result.columns[0])))


def checksummed(value):
    """Return an address with a checksum, and any other value unchanged."""
    return f"0x{value[2:].upper()}" if isinstance(value, str) and value[:2] == "0x" else value


def check_repeated_rows(case):
    """Rows that stand twice count once, and a warning says so."""
    step = 3 if case.has_identity else 1
    again = {
        name: pd.concat([frame, frame.iloc[::step]])
        for name, frame in case.frames(case.rows).items()
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = case.run(again)
    assert_same(case, found, check_dtype=False)
    assert {item.category for item in caught} == ({RepeatedRows} if case.has_identity else set())


def check_missing_columns(case):
    """A frame and a column that the helper needs are named; it works without all others.

    Some columns are only needed with these arguments: they are named, too.
    """
    whole = case.frames(case.rows)
    fewest = {}
    for name, frame in whole.items():
        needed = case.needed[name].split()
        fewest[name] = frame[needed]
        if needed:
            assert name in missed(case, whole | {name: pd.DataFrame()})
        for column in needed:
            assert {name, column} <= missed(case, whole | {name: frame.drop(columns=column)})
        numbers = [column for column in needed if frame[column].dtype == "float64"]
        if numbers:
            texts = frame.astype(dict.fromkeys(numbers, "str"))
            assert {name, "str"} <= missed(case, whole | {name: texts})
    while words := missed(case, fewest):
        (name,) = words & set(whole)
        more = [column for column in whole[name] if column in words - set(fewest[name])]
        assert more, f"{name}: {words}"
        fewest[name] = whole[name][[*fewest[name], *more]]


def missed(case, frames):
    """Return the words of the error about missing columns, or none if the helper works."""
    with warnings.catch_warnings():
        # Without the columns that name them, rows of several validators may be the same.
        warnings.simplefilter("ignore", RepeatedRows)
        try:
            case.run(frames)
        except MissingColumns as error:
            return set(re.findall(r"\w+", str(error)))
    return set()


@pytest.mark.parametrize("case", [case for case in CASES if case.at_scale], ids=str)
def test_many_rows_match_closed_form(case):
    """`make bench` repeats this with a million rows."""
    frames = case.frames(min(case.most, 20_000))
    case.at_scale(frames, case.run(frames))


@pytest.mark.parametrize("helper", ["pnl.attribution", "pnl.lots", "slippage.heatmap"])
def test_polars_frames_give_pandas_result(helper):
    case = next(case for case in CASES if case.helper == helper)
    given = {name: polars.from_pandas(frame) for name, frame in case.frames(case.rows).items()}
    assert_same(case, case.run(given))
    assert_same(case, case.run({name: frame.lazy() for name, frame in given.items()}))
