"""Every helper gives the pandas result on PySpark: on threads, and over Spark Connect."""

import pyarrow as pa
import pytest

import toolkit as tk
from tests.engines import Engine
from tests.scale.case import cases
from tests.scale.test_cases import close, given, pandas_rows, rows_of
from tests.spark import check_equal, close_gateway, connect_session, open_session
from toolkit.errors import RepeatedRows

pytestmark = pytest.mark.xdist_group("spark")  # one process starts Java

CASES = cases()


@pytest.fixture(scope="module")
def threads():
    session = open_session("local[2]")
    yield session
    session.stop()
    close_gateway()


@pytest.fixture(scope="module")
def remote(threads):
    session = connect_session(threads)
    yield session
    session.stop()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_threads_equal_pandas(case, threads):
    check_equal(case, case.numbers[-1], threads)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_connect_equals_pandas(case, remote):
    check_equal(case, case.numbers[0], remote)


def test_repeated_rows_count_once(threads):
    case = next(case for case in CASES if case.helper == "pnl.attribution")
    frame = given(case)["fills"]
    fills = threads.createDataFrame(frame.astype({"crossed": "bool"}).iloc[[0, 1, 1]])
    with pytest.warns(RepeatedRows, match="1 of 3 rows"):
        result = case.run({"fills": fills})
    assert [row["fills"] for row in result.collect()] == [2]


def test_unnamed_copies_count_once(threads):
    case = next(case for case in CASES if case.helper == "pnl.attribution")
    frame = given(case)["fills"].astype({"crossed": "bool"}).iloc[[0, 1, 1]]
    frame = frame.assign(user=[None, None, "0xa"])
    with pytest.warns(RepeatedRows, match="1 of 3 rows"):
        result = tk.pnl.attribution(threads.createDataFrame(frame), by="user")
    assert {row["user"]: row["fills"] for row in result.collect()} == {None: 1, "0xa": 1}


def test_unnamed_payments_stay(threads):
    """Another account with an equal position is paid the same."""
    case = next(case for case in CASES if case.helper == "funding.sums")
    frame = given(case)["funding"].iloc[[0, 0]].assign(user=[None, "0xa"])
    result = tk.funding.sums(threads.createDataFrame(frame), None)
    assert [row["payments"] for row in result.collect()] == [2]


def test_empty_frames_equal_pandas(remote):
    spark = Engine("spark", remote)
    for helper in ("pnl.positions", "pnl.attribution", "funding.sums"):
        case = next(case for case in CASES if case.helper == helper)
        frames = {name: spark.give(frame) for name, frame in given(case, n=0).items()}
        assert rows_of(case, spark, case.run(frames)) == pandas_rows(case, n=0)


def test_spark_scan_equals_pandas_scan(threads, remote, tmp_path):
    """Spark reads the files itself; the rows and the results are those of pandas."""
    session = tk.local(seed=7, size="tiny")
    users, archive = session.world["users"][:2], tk.archive.open(tmp_path)
    for user in users:
        archive.refresh(tk.user_fills_by_time, user, 0)
    plain = archive.scan("fills", engine="pandas")
    wanted = tk.pnl.attribution(plain, by="user")
    for spark in (threads, remote):
        rows = archive.scan("fills", engine="spark", session=spark)
        assert rows.columns == list(plain.columns)
        found = Engine("spark", spark).take(tk.pnl.attribution(rows, by="user"))
        assert found == [close(row) for row in Engine("pandas").take(wanted)]
    exact = archive.scan("fills", engine="pandas", numbers="exact")
    wanted = tk.pnl.attribution(exact, by="user")
    scans = {
        spark: archive.scan("fills", engine="spark", session=spark, numbers="exact")
        for spark in (threads, remote)
    }
    found = Engine("spark", threads).take(tk.pnl.attribution(scans[threads], by="user"))
    assert found == [close(row) for row in Engine("pandas").take(wanted)]
    names, order = ["tid", "oid", "px", "fee"], [("tid", "ascending"), ("oid", "ascending")]
    decoded = scans[remote].select(*names).toArrow().sort_by(order)
    wanted = pa.Table.from_pandas(exact[names], preserve_index=False).sort_by(order)
    assert decoded.to_pylist() == wanted.to_pylist()
    middle = int(plain["time"].median().timestamp() * 1000)
    rows = archive.scan(
        "fills", subject=users[0], end=middle, columns=["tid"], engine="spark", session=threads
    )
    few = archive.scan("fills", subject=users[0], end=middle, columns=["tid"], engine="pandas")
    assert sorted(row["tid"] for row in rows.collect()) == sorted(few["tid"])
    assert archive.scan("orders", engine="spark", session=threads).count() == 0
    with pytest.raises(ValueError, match="belong together"):
        archive.scan("fills", engine="spark", session=None)
