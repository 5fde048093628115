"""The cost of a refresh does not grow with the number of accounts in the archive."""

import toolkit as tk
from tests.archive.world import START, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.schemas import PULLS, Series
from toolkit.contract.operations import OPERATIONS

USERS = [f"0x{number:040x}" for number in range(36)]
FILLS = make_fills(5)


def test_refresh_opens_files_of_one_account(tmp_path):
    archive, session = open_archive(tmp_path), fill_session(FILLS, users=USERS)
    for user in USERS:
        archive.refresh(tk.user_fills_by_time, user, START, session=session)
    tables = archive.tables
    fills, log = tables.open_table("fills"), tables.open_table(PULLS)
    assert len(fills.file_uris()) < 10  # small files are joined
    for user in USERS[::12]:
        series = Series(OPERATIONS["userFillsByTime"], user)
        assert len(list(tables.open_dataset(fills, series).get_fragments())) == 1
    assert len(log.file_uris()) < 10
    assert archive.status()["rows"].tolist() == [len(FILLS)] * len(USERS)
    assert archive.verify() == []
    # A table is opened from its last checkpoint and the commits after it.
    assert len(list((tmp_path / "fills" / "_delta_log").glob("*.checkpoint.parquet"))) == 1


def test_account_is_found_in_new_files(tmp_path):
    """Which accounts a file has is read once; files that come later are read, too."""
    archive, fills = open_archive(tmp_path), make_fills(12)
    for users, rows in ((USERS[:2], 5), (USERS[2:4], 5), (USERS[:3], 12)):
        session = fill_session(fills[:rows], users=users)
        for user in users:
            archive.refresh(tk.user_fills_by_time, user, START, session=session)
            assert len(archive.frame(tk.user_fills_by_time, user)) == rows
    lengths = [len(archive.frame(tk.user_fills_by_time, user)) for user in USERS[:4]]
    assert lengths == [12, 12, 12, 5]
    middle = fills[6].time
    part = archive.frame(tk.user_fills_by_time, USERS[0], start=middle)
    assert len(part) == sum(fill.time >= middle for fill in fills)
    dataset = archive.tables.open_dataset(archive.tables.open_table("fills"))
    assert len(list(dataset.get_fragments())) > 2
