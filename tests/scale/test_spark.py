"""Every helper gives the pandas result on PySpark: on threads, over Connect, on two executors."""

import os
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engines import Engine
from tests.scale.case import ON_EXECUTORS, Case, cases
from tests.scale.test_cases import close, given, rows_of
from tests.spark import close_gateway, connect_session, open_session
from toolkit.errors import RepeatedRows

pytestmark = pytest.mark.xdist_group("spark")  # one process starts Java

CASES = cases()
KINDS = [(case, kind) for case in CASES for kind in case.numbers]


@pytest.fixture(scope="module")
def java() -> None:
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("no Java found: PySpark was NOT checked (apt-get install default-jre-headless)")


@pytest.fixture(scope="module")
def threads(java: None) -> Iterator[Any]:
    session = open_session("local[2]")
    yield session
    session.stop()
    close_gateway()


@pytest.fixture(scope="module")
def remote(threads: Any) -> Iterator[Any]:
    session = connect_session(threads)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def executors(java: None) -> Iterator[Any]:
    session = open_session("local-cluster[2,1,1024]")
    yield session
    session.stop()
    close_gateway()


def check_equal(case: Case, kind: str, session: Any) -> None:
    pandas, spark = Engine("pandas"), Engine("spark", session)
    frames = given(case, kind)
    wanted = rows_of(case, pandas, case.run(frames))
    result = case.run({name: spark.give(frame) for name, frame in frames.items()})
    assert (spark if case.gives == "same" else pandas).owns(result)
    found = rows_of(case, spark, result)
    assert len(found) == len(wanted)
    for item, other in zip(found, wanted, strict=True):
        assert list(item) == list(other)
        assert item == close(other)


@pytest.mark.parametrize(("case", "kind"), KINDS, ids=str)
def test_threads_agree(case: Case, kind: str, threads: Any) -> None:
    check_equal(case, kind, threads)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_connect_agrees(case: Case, remote: Any) -> None:
    check_equal(case, case.numbers[-1], remote)


def test_repeated_rows_count_once(threads: Any) -> None:
    case = next(case for case in CASES if case.helper == "pnl.attribution")
    frame = given(case)["fills"]
    fills = threads.createDataFrame(frame.astype({"crossed": "bool"}).iloc[[0, 1, 1]])
    with pytest.warns(RepeatedRows, match="1 of 3 rows"):
        result = case.run({"fills": fills})
    assert [row["fills"] for row in result.collect()] == [2]


def test_empty_frames(threads: Any) -> None:
    spark = Engine("spark", threads)
    for helper in ("pnl.positions", "pnl.attribution", "funding.sums"):
        case = next(case for case in CASES if case.helper == helper)
        frames = {name: spark.give(frame) for name, frame in given(case, n=0).items()}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = rows_of(case, spark, case.run(frames))
        assert found == rows_of(case, Engine("pandas"), case.run(given(case, n=0)))


@pytest.mark.parametrize("case", [case for case in CASES if str(case) in ON_EXECUTORS], ids=str)
def test_executors_agree(case: Case, executors: Any) -> None:
    check_equal(case, case.numbers[-1], executors)
