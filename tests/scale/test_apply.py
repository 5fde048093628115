"""`tk.apply` on partitions gives what the helper gives for all rows at once."""

from concurrent.futures import ProcessPoolExecutor

import pandas as pd
import pytest

import toolkit as tk
from toolkit.errors import RepeatedRows
from toolkit.partitions import Files, Part


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny")


@pytest.fixture(scope="module")
def fills(session):
    return tk.many(tk.user_fills_by_time, session.world["users"][:5], "30d", session=session)


@pytest.fixture(scope="module")
def path(fills, tmp_path_factory):
    """Two files: of one account in the middle both have rows."""
    folder = tmp_path_factory.mktemp("fills")
    rows = fills.sort_values("user", kind="stable")
    half = len(rows) // 2
    rows[:half].to_parquet(folder / "1.parquet")
    rows[half:].to_parquet(folder / "2.parquet")
    return folder


@pytest.fixture(scope="module")
def archive(session, fills, tmp_path_factory):
    archive = tk.archive.open(tmp_path_factory.mktemp("archive"))
    users = fills["user"].unique()
    archive.refresh_many(tk.user_fills_by_time, users, "30d", session=session)
    archive.refresh(tk.user_fills, users[0], session=session)  # in the same table, not counted
    return archive


def assert_equal(found, whole):
    keys = [name for name in ("user", "coin", "day", "opened") if name in whole]
    found, whole = (
        frame.sort_values(keys, ignore_index=True, kind="stable") for frame in (found, whole)
    )
    pd.testing.assert_frame_equal(found, whole, rtol=1e-9, atol=1e-9)


CALLS = [
    (tk.pnl.round_trips, "user", {}),
    (tk.pnl.attribution, "user", {}),
    (tk.pnl.attribution, "user", {"by": ["user", "day"]}),
    (tk.pnl.attribution, "user", {"by": ["dir", "side", "dex"], "prices": {"USDH": 0.5}}),
    (tk.pnl.attribution, "coin", {"by": "coin"}),
    (tk.pnl.attribution, "day", {"by": ["day", "coin"]}),
]


def test_partitions_equal_whole(fills, path, archive):
    for helper, split, arguments in CALLS:
        whole = helper(fills, **arguments)
        for rows in (path, archive.files(tk.user_fills_by_time)):
            found = tk.apply(helper, rows, split=split, rows_at_once=2_000, **arguments)
            assert_equal(found, whole)
            facts = found.attrs["toolkit"]
            assert facts["partitions"] > 1
            assert facts["simulated"] is True


def test_fills_of_equal_names_and_signs_are_added_up(tmp_path):
    """Fees in USDC, in the base token, in a token without a price; rebates; a price of 0."""
    rows = [
        ("BTC", "B", "Open Long", "USDC", 100.0, 2.0, 0.0, 0.3, 0.1, 7),
        ("BTC", "B", "Open Long", "USDC", 110.0, 1.0, 0.0, 0.1, 0.2, 8),
        ("BTC", "A", "Close Long", "HYPE", 120.0, 3.0, 40.0, 0.5, None, 9),
        ("PURR/USDC", "B", "Buy", "PURR", 2.0, 10.0, 0.0, 0.01, None, 10),
        ("PURR/USDC", "B", "Buy", "PURR", 3.0, 20.0, 0.0, 0.02, None, 11),
        ("PURR/USDC", "B", "Buy", "USDC", 3.0, 20.0, 0.0, -0.02, None, 12),
        ("#10", "A", "Settlement", "USDC", 0.0, 5.0, -2.0, 0.0, None, 0),
        ("#10", "A", "Split Outcome", "USDC", 0.5, 5.0, 1.0, 0.0, None, 0),
    ]
    amounts = ["px", "sz", "closed_pnl", "fee", "builder_fee"]
    fills = pd.DataFrame(rows * 3, columns=["coin", "side", "dir", "fee_token", *amounts, "tid"])
    fills["tid"] += fills.index // len(rows) * 100 * (fills["tid"] > 0)
    fills["time"] = pd.to_datetime(fills.index * 1_800_123, unit="ms", utc=True)
    fills["user"] = "0xa"
    fills.to_parquet(tmp_path / "a.parquet")
    part = Part("0xa", "0xa")
    assert len(Files.open(tmp_path).add_up("user", part, ["coin"])) == 7
    for by in ([], ["coin", "side"], ["hour", "user"]):
        assert_equal(
            tk.apply(tk.pnl.attribution, tmp_path, by=by), tk.pnl.attribution(fills, by=by)
        )
    for column, value in {"px": None, "fee": float("inf"), "dir": None, "tid": 7}.items():
        changed = fills.assign(**{column: fills[column].where(fills.index != 8, value)})
        changed.to_parquet(tmp_path / "a.parquet")
        assert Files.open(tmp_path).add_up("user", part, []) is None
    for name in ("dex", "Px"):  # DuckDB does not tell Px from px
        fills.assign(**{name: 1.0}).to_parquet(tmp_path / "a.parquet")
        assert Files.open(tmp_path).add_up("user", part, []) is None
    fills.assign(crossed=[True, None] * 12).to_parquet(tmp_path / "a.parquet")
    assert tk.apply(tk.pnl.attribution, tmp_path, by="crossed")["crossed"].isna().sum() == 1


def test_names_of_files_are_neither_columns_nor_patterns(fills, tmp_path):
    folder = tmp_path / "coin=ETH"
    folder.mkdir()
    for rows, name in ((fills[:200], "a1.parquet"), (fills[200:600], "a[1].parquet")):
        rows.to_parquet(folder / name)
        found = tk.apply(tk.pnl.attribution, folder / name, by="coin")
        assert_equal(found, tk.pnl.attribution(rows, by="coin"))


def test_processes_equal_whole(fills, path):
    with ProcessPoolExecutor(2) as pool:
        found = tk.apply(tk.pnl.round_trips, path, executor=pool, rows_at_once=2_000)
    assert_equal(found, tk.pnl.round_trips(fills))


def test_columns_limit_what_is_read(fills, path):
    columns = ["user", "coin", "px", "sz", "side", "time", "closed_pnl", "fee", "fee_token", "tid"]
    found = tk.apply(tk.pnl.attribution, path, columns=columns)
    assert found["net"].item() == pytest.approx(tk.pnl.attribution(fills)["net"].item())


def test_warnings_come_once(fills, tmp_path):
    twice = pd.concat([fills, fills[:1]])
    twice.to_parquet(tmp_path / "fills.parquet")
    with pytest.warns(RepeatedRows) as caught:
        found = tk.apply(tk.pnl.attribution, tmp_path, rows_at_once=2_000)
    assert len(caught) == 1
    assert found["fills"].item() == tk.pnl.attribution(fills)["fills"].item()


def test_helpers_that_need_all_rows_are_refused(fills, path, tmp_path):
    plain = tmp_path / "plain.parquet"
    fills.drop(columns="user").to_parquet(plain)
    some = tmp_path / "some.parquet"
    fills.assign(user=fills["user"].where(fills.index > 0)).to_parquet(some)
    refused = [
        (tk.pnl.round_trips, path, {"split": "day"}, "pnl.round_trips"),
        (tk.pnl.attribution, plain, {}, "user"),
        (tk.pnl.attribution, some, {}, "1"),
        (tk.pnl.attribution, fills, {}, "pathlib.Path"),
        (tk.pnl.attribution, fills, {"funding": path}, "fills"),
        (tk.pnl.attribution, path, {"positions": (None, fills)}, "positions"),
        (tk.pnl.round_trips, fills, {"funding": path}, "fills"),
    ]
    for helper, rows, arguments, named in refused:
        with pytest.raises(ValueError, match=named):
            tk.apply(helper, rows, **arguments)
