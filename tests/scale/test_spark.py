"""Helpers give the pandas result on PySpark: on two executors, and over Spark Connect."""

import pytest

import toolkit as tk
from tests.engines import as_table, rows_of
from tests.scale.case import cases
from tests.scale.test_cases import close, plain_result
from tests.spark import close_gateway, connect_session, open_session
from toolkit.archive.engines import spark_frame

pytestmark = pytest.mark.xdist_group("spark")  # one process starts Java

CASES = {str(case): case for case in cases()}
ON_EXECUTORS = (
    "funding.sums by day and dex",  # calendar groups
    "funding.accrual",  # a window
    "pnl.attribution",
    "pnl.equity",  # account by account
)


@pytest.fixture(scope="module")
def executors():
    session = open_session("local-cluster[2,1,1024]")
    yield session
    session.stop()
    close_gateway()


@pytest.fixture(scope="module")
def remote(executors):
    session = connect_session(executors)
    yield session
    session.stop()


def assert_same(found, wanted):
    assert rows_of(wanted) == [close(row) for row in rows_of(found)]


def check_equal(name, session):
    case = CASES[name]
    tables = {key: as_table(frame) for key, frame in case.frames(case.rows).items()}
    result = case.run({key: spark_frame(session, table) for key, table in tables.items()})
    assert_same(result, plain_result(case))


def test_two_executors_run(executors):
    assert executors.sparkContext.master.startswith("local-cluster[2,")
    assert executors.range(4).count() == 4  # the first job waits for all executors
    # The driver itself is in the list, too.
    assert executors.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 3


@pytest.mark.parametrize("name", ON_EXECUTORS)
def test_executors_equal_pandas(name, executors):
    check_equal(name, executors)


def test_connect_equals_pandas(remote):
    check_equal("pnl.attribution", remote)


def test_partitions_on_spark_equal_pandas(executors, remote, tmp_path):
    session = tk.local(seed=7, size="tiny")
    fills = tk.many(tk.user_fills_by_time, session.world["users"][:4], "30d", session=session)
    fills.sort_values("user").to_parquet(tmp_path / "fills.parquet")
    for spark in (executors, remote):
        found = tk.apply(
            tk.pnl.attribution, tmp_path, by="coin", rows_at_once=2_000, executor=spark
        )
        assert_same(found, tk.pnl.attribution(fills, by="coin"))


def test_spark_scan_equals_pandas_scan(executors, remote, tmp_path):
    """Spark reads the files itself; the rows and the results are those of pandas."""
    session = tk.local(seed=7, size="tiny")
    users, archive = session.world["users"][:2], tk.archive.open(tmp_path)
    for user in users:
        archive.refresh(tk.user_fills_by_time, user, 0)
    plain = archive.scan("fills", engine="pandas")
    wanted = tk.pnl.attribution(plain, by="user")
    for spark in (executors, remote):
        rows = archive.scan("fills", engine="spark", session=spark)
        assert rows.columns == list(plain.columns)
        assert_same(tk.pnl.attribution(rows, by="user"), wanted)
    names, order = ["tid", "oid", "px", "fee"], [("tid", "ascending"), ("oid", "ascending")]
    exact = archive.scan("fills", engine="pandas", numbers="exact")
    scanned = archive.scan("fills", engine="spark", session=remote, numbers="exact")
    decoded = scanned.select(*names).toArrow().sort_by(order)
    wanted = as_table(exact[names]).sort_by(order)
    assert decoded.to_pylist() == wanted.to_pylist()
    few = {
        "subject": users[0],
        "end": int(plain["time"].median().timestamp() * 1000),
        "columns": ["tid"],
    }
    rows = archive.scan("fills", engine="spark", session=executors, **few).collect()
    wanted = archive.scan("fills", engine="pandas", **few)["tid"]
    assert sorted(row["tid"] for row in rows) == sorted(wanted)
    assert archive.scan("orders", engine="spark", session=executors).count() == 0
    with pytest.raises(ValueError, match="session"):
        archive.scan("fills", engine="spark", session=None)
