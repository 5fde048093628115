"""The archive on an object store works like in a folder and shows no credentials."""

import traceback

import pandas as pd
import pytest

import toolkit as tk
from tests.archive import bucket
from tests.archive.commands import run_command
from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.test_scan import to_table
from tests.archive.world import START, archived_rows, error_kinds, fill_session
from toolkit.archive import open as open_archive
from toolkit.errors import ArchiveError, HistoryWarning


@pytest.fixture(name="store")
def _store(served, monkeypatch):
    """Set the credentials in the environment, also for processes that a test starts."""
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    return served.environment


@pytest.mark.usefixtures("store")
def test_store_works_like_folder(tmp_path, tiny):
    session, place = fill_session(FILLS, users=USERS), f"{bucket.BUCKET}/every"
    archive, folder = open_archive(place), open_archive(tmp_path)
    for target in (archive, folder):
        refresh_all(target, session, users=USERS[:1])
        target.refresh(tk.meta, session=tiny)
    assert archived_rows(archive) == archived_rows(folder)
    columns = ["table", "subject", "rows", "first", "covered_until", "gaps"]
    pd.testing.assert_frame_equal(archive.status()[columns], folder.status()[columns])
    name = archive.freeze()
    assert archive.compact() > 5
    assert archive.verify() == []
    archive.refresh(tk.user_fills_by_time, USERS[3], START, session=session)
    fetched = tk.user_fills_by_time(USERS[0], START, session=session)
    frozen = open_archive(f"{place}@{name}")
    assert frozen.verify() == []
    assert set(frozen.status()["subject"]) == set(folder.status()["subject"])
    offline = tk.local(archive=f"{place}@{name}", default=False)
    with pytest.warns(HistoryWarning, match="up to 2025-09-01T"):  # meta was archived a month later
        read = frozen.frame(tk.user_fills_by_time, USERS[0])
    pd.testing.assert_frame_equal(read, fetched)
    with pytest.warns(HistoryWarning, match="up to 2025-09-01T"):
        again = tk.user_fills_by_time(USERS[0], START, session=offline)
    assert tk.provenance(again)["complete"] == "yes"
    pd.testing.assert_frame_equal(again, fetched)
    for engine in ("duckdb", "polars", "pandas"):
        found = archive.scan("fills", subject=USERS[3], engine=engine)
        assert len(to_table(found)) == len(FILLS)
    assert "no errors: " in run_command("verify", f"{place}@{name}").output


def test_store_hides_credentials(store):
    options = {name: store[name] for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")}
    with bucket.run_echo_store() as address:
        archive = open_archive(
            f"{bucket.BUCKET}/echo",
            storage_options={
                **options,
                "AWS_ENDPOINT_URL": address,
                "AWS_SESSION_TOKEN": "canary-3",
            },
        )
        with pytest.raises(ArchiveError, match="credentials") as caught:
            archive.status()
    shown = (
        "".join(traceback.format_exception(caught.value)) + repr(archive) + archive._repr_html_()
    )
    assert "echoed" in shown
    assert "canary" not in shown
    for address in ("s3://canary-name:canary@bucket/x", "s3://bucket/x?secret=canary"):
        with pytest.raises(ArchiveError, match="environment") as caught:
            open_archive(address)
        assert "canary" not in str(caught.value)


@pytest.mark.usefixtures("store")
def test_missing_bucket_is_named():
    archive = open_archive("s3://nowhere/kept")
    with pytest.raises(ArchiveError, match=r"s3://nowhere/kept.*check the address"):
        archive.status()


QUICKLY = {"max_retries": "2", "backoff_config.init_backoff": "1ms"}
REFUSALS = [  # accepted writes, the refusal of more, and what the error names
    (8, "403 Forbidden", "QuotaExceeded", "no space left"),
    (21, "403 Forbidden", "QuotaExceeded", "no space left"),
    (9, "507 Insufficient Storage", "XMinioStorageFull", "no space left"),
    (5, "403 Forbidden", "AccessDenied", "the credentials allow writing"),
    (8, "503 Service Unavailable", "SlowDown", "the store works"),
]


@pytest.mark.parametrize(("writes", "status", "code", "words"), REFUSALS)
def test_store_refuses_writes(store, served, writes, status, code, words):
    """A refresh has 22 writes: new tables, files, commits and the log entry."""
    place = f"refused/{writes}-{status[:3]}-{code}"
    archive = open_archive(f"{bucket.BUCKET}/{place}", storage_options=QUICKLY)
    session, fetched = fill_session(FILLS, users=USERS), (tk.user_fills_by_time, USERS[0], START)
    served.make(bucket.WriteLimit(writes, status, code))
    try:
        for _ in range(2):  # the second try changes nothing
            with pytest.raises(ArchiveError, match=f"{words}.*refresh again") as caught:
                archive.refresh(*fetched, page_size=100, rows_per_commit=200, session=session)
            assert "no archived row is lost" in str(caught.value)
            assert "canary" not in "".join(traceback.format_exception(caught.value))
            assert error_kinds(archive) == set()
    finally:
        served.make(bucket.WriteLimit())
    before = archived_rows(archive)
    assert len(before) == len(set(before)) <= len(FILLS)
    archive.refresh(*fetched, session=session)
    assert archive.verify() == []
    fetched = tk.user_fills_by_time(USERS[0], START, numbers="text", session=session)
    archived = archive.frame(tk.user_fills_by_time, USERS[0], numbers="text")
    pd.testing.assert_frame_equal(archived, fetched)
    assert all(b"canary" not in content for content in bucket.list_objects(store, place).values())
