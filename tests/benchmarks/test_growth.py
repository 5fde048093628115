"""Growth with the number of rows.

All fills belong to one account. The peak of memory is what a task adds to its process. `verify` and
`compact` run in their own process. An exponent of 1 means linear growth, and 0 means that the size
has no influence.
"""

import functools
import itertools
import json
import time
from functools import partial

import pytest

import toolkit as tk
from tests.benchmarks import history
from tests.benchmarks.growth import Figure, measure_growth, measure_growth_alone
from tests.benchmarks.test_frames import as_the_toolkit_does, page_of_fills

FETCH = tk.user_fills_by_time


@pytest.fixture(scope="module")
def session(tmp_path_factory, sizes):
    store = history.history_store(tmp_path_factory.mktemp("growth") / "history.db", sizes[-1])
    with history.history_session(store) as session:
        yield session


def pull(session, rows):
    frame = FETCH(history.USER, history.START, history.history_end(rows), session=session)
    assert len(frame) == rows
    return frame


pull_once = functools.cache(pull)


def test_growth_of_decoding(sizes, report):
    pages = [page_of_fills(1_000, 1_000 * number) for number in range(20)]
    report(
        measure_growth(
            "decode pages into a frame",
            lambda rows: list(itertools.islice(itertools.cycle(pages), rows // 1_000)),
            as_the_toolkit_does,
            sizes,
        )
    )


def test_growth_of_fetching(session, sizes, report):
    report(
        measure_growth(
            "fetch from a service in the same process, rows checked",
            lambda rows: rows,
            partial(pull, session),
            sizes,
            rounds=1,
        )
    )


def test_growth_of_service_page(tmp_path, sizes, report):
    """A page in the middle of a store of so many rows."""

    def prepare(rows):
        store = history.history_store(tmp_path / f"{rows}.db", rows)
        application = history.history_application(store)
        body = {
            "type": "userFillsByTime",
            "user": history.USER,
            "cursor": f"{history.history_end(rows // 2)}_0",
        }
        headers = {"authorization": "Bearer s3cret"}
        return partial(application.respond, "POST", "/info", headers, json.dumps(body).encode())

    def ask_often(ask):
        for _ in range(100):
            assert ask().status == 200

    report(
        measure_growth("100 pages of the service, at most 2,000 rows", prepare, ask_often, sizes)
    )


def test_growth_of_archive(session, tmp_path, sizes, report):
    folders = itertools.count()

    def refresh(archive, rows):
        archive.refresh(
            FETCH, history.USER, history.START, history.history_end(rows), session=session
        )

    def empty(rows):
        return tk.archive.open(tmp_path / f"{next(folders)}"), rows

    kept: dict[int, tk.archive.Archive] = {}
    places: dict[int, str] = {}

    def filled(rows):
        if rows not in kept:
            places[rows] = f"{tmp_path / f'filled-{rows}'}"
            kept[rows] = tk.archive.open(places[rows])
            refresh(kept[rows], rows)
        return kept[rows]

    def append(argument):
        refresh(*argument)

    def measure(what, prepare, work):
        report(measure_growth(what, prepare, work, sizes, rounds=1))

    measure("append: the first refresh, with its fetching", empty, append)
    measure("refresh again, nothing is new", lambda rows: (filled(rows), rows), append)
    measure("scan and sum fees by coin, duckdb", filled, scan_duckdb)
    measure("scan and sum fees by coin, polars", filled, scan_polars)
    measure("frame of the account", filled, lambda archive: archive.frame(FETCH, history.USER))
    for what, work in {"verify": verify, "compact": compact}.items():
        report(measure_growth_alone(what, lambda rows: places[rows], open_archive, work, sizes))


def test_archive_size_of_many_accounts(tmp_path, report):
    """The archive of a simulated exchange, whose rows differ as those of an exchange do."""
    session = tk.local(seed=7, size="tiny", default=False)
    archive = tk.archive.open(tmp_path)
    for user in session.world["users"]:
        archive.refresh(FETCH, user, 0, session=session)
    begun = time.process_time()
    for user in session.world["users"]:
        archive.refresh(FETCH, user, 0, session=session)
    seconds = time.process_time() - begun
    archive.compact()
    status = archive.status()
    report(Figure("bytes of an archived fill", status["bytes"].sum() / status["rows"].sum()))
    report(Figure("seconds of a refresh without new rows", seconds / len(session.world["users"])))


def open_archive(place):
    archive = tk.archive.open(place)
    archive.status()  # its imports
    return archive


def verify(archive):
    return archive.verify()


def compact(archive):
    return archive.compact()


def scan_duckdb(archive):
    columns = archive.scan("fills", columns=["coin", "fee"], engine="duckdb")
    return columns.aggregate("coin, sum(fee)").fetchall()


def scan_polars(archive):
    columns = archive.scan("fills", columns=["coin", "fee"], engine="polars")
    return columns.group_by("coin").sum().collect()


DECIMALS = dict.fromkeys(history.COINS, 2)
HELPERS = {
    "pnl.attribution": tk.pnl.attribution,
    "pnl.positions": lambda fills: tk.pnl.positions(fills, DECIMALS),
    "pnl.lots": tk.pnl.lots,
    "pnl.round_trips": tk.pnl.round_trips,
    "pnl.audit": lambda fills: tk.pnl.audit(fills, DECIMALS),
    "pnl.equity": tk.pnl.equity,
    "pnl.drawdown": lambda fills: tk.pnl.drawdown(tk.pnl.equity(fills)),
}


@pytest.mark.parametrize("name", HELPERS)
def test_growth_of_common_helpers(name, session, sizes, report):
    """docs/scale.md computes its estimate from them."""
    prepare = partial(pull_once, session)
    report(measure_growth(f"{name}, pandas", prepare, HELPERS[name], sizes, rounds=1))
