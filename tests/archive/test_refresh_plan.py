"""A snapshot shows which accounts changed, so that the others need no request."""

import json
from itertools import chain

import msgspec
import pandas as pd
import pytest

import toolkit as tk
from tests.archive.commands import run_command
from tests.archive.world import store_session
from tests.worlds import world_of
from toolkit.archive import open as open_archive
from toolkit.contract.source_tables import AccountSnapshot, Sources
from toolkit.service import build_store
from toolkit.times import MINUTE

RESTING = 4  # accounts that rest, for each account that may trade


class Exchange:
    """The tiny exchange at the times of its snapshots, with further accounts that rest."""

    def __init__(self, sources):
        self._sources = sources
        self.times = [snapshot.time for snapshot in sources.account_snapshots]
        self.fills = list(sources.fills)
        values = sources.account_snapshots[0].values
        self.traders = sorted({row.user for rows in values.values() for row in rows})
        self._resting = {
            user: [f"0x{RESTING * place + n:040x}" for n in range(RESTING)]
            for place, user in enumerate(self.traders)
        }
        self.users = [*self.traders, *chain(*self._resting.values())]

    def fills_until(self, time):
        """Return the trade ids of each account."""
        ids = {user: [] for user in self.traders}
        for user, fill in self.fills:
            if fill.time <= time:
                ids[user].append(fill.tid)
        return ids

    def session(self, time):
        """Return a session whose present is `time`."""
        snapshots = [each for each in self._sources.account_snapshots if each.time <= time]
        sources = Sources(
            start_ms=self._sources.start_ms,
            now_ms=time,
            label="test",
            simulated=True,
            fills=[(user, fill) for user, fill in self.fills if fill.time <= time],
            account_snapshots=[self._add_resting(snapshot) for snapshot in snapshots],
        )
        return store_session(build_store(sources))

    def _add_resting(self, snapshot):
        values = {}
        for place, rows in snapshot.values.items():
            flat = {"total_long_notional": 0.0, "total_short_notional": 0.0}
            copies = [
                msgspec.structs.replace(row, user=copy, account_value=5.0, **flat)
                for row in rows
                for copy in self._resting[row.user]
            ]
            values[place] = [*rows, *copies]
        return AccountSnapshot(snapshot.snapshot_id, snapshot.time, values)


@pytest.fixture(scope="module", name="exchange")
def _exchange():
    return Exchange(world_of("tiny").sources)


def archived_ids(archive, users):
    frames = {user: archive.frame(tk.user_fills_by_time, user) for user in users}
    return {user: frame["tid"].tolist() for user, frame in frames.items()}


def is_spot(fill):
    return fill.coin[0] in "@#" or "/" in fill.coin


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
def test_only_moved_accounts_are_asked(exchange, tmp_path):
    """The archive equals that of a full refresh, except for fills that no snapshot shows."""
    archive, (before, after, _) = open_archive(tmp_path), exchange.times
    session = exchange.session(before + MINUTE)
    plan = archive.plan_refresh(tk.user_fills_by_time, exchange.users, session=session)
    assert set(plan.accounts["why"]) == {"nothing is archived"}
    archive.refresh_many(tk.user_fills_by_time, plan.to_ask, 0, session=session)

    session = exchange.session(after)
    plan = archive.plan_refresh(tk.user_fills_by_time, session=session)
    assert sorted(plan.accounts["user"]) == sorted(exchange.users)
    assert len(plan.to_ask) == 11  # of 200; ten of them have new perp fills
    assert (plan.points, plan.points_of_all) == (112, 2_000)
    archive.refresh_many(tk.user_fills_by_time, plan.to_ask, session=session)
    assert session.counts.requests == 12  # the snapshots, and each account that is asked
    assert session.budget.spent == plan.points

    wanted, found = exchange.fills_until(after), archived_ids(archive, exchange.traders)
    unseen = {user for user in exchange.traders if found[user] != wanted[user]}
    late = [(user, fill) for user, fill in exchange.fills if before < fill.time <= after]
    only_spot = {user for user, _ in late} - {user for user, fill in late if not is_spot(fill)}
    assert unseen == only_spot - set(plan.to_ask)
    assert len(unseen) == 1
    for user in unseen:  # the archive does not claim what it did not ask for
        frame = archive.frame(tk.user_fills_by_time, user, end=after - MINUTE)
        assert tk.provenance(frame)["complete"] == "no"
    archive.refresh_many(tk.user_fills_by_time, sorted(unseen), session=session)
    assert archived_ids(archive, unseen) == {user: wanted[user] for user in unseen}
    assert archive.verify() == []


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
def test_accounts_with_position_are_asked_for_funding(exchange, tmp_path):
    """Without an older snapshot every account is asked; after funding, all with a position."""
    archive, (_, before, after) = open_archive(tmp_path), exchange.times
    users = exchange.users
    session = exchange.session(before + MINUTE)
    archive.refresh_many(tk.user_fills_by_time, users, session=session)
    session = exchange.session(before + 2 * MINUTE)
    plan = archive.plan_refresh(tk.user_fills_by_time, users, session=session)
    assert set(plan.accounts["why"]) == {"no snapshot is older than the end of the range"}
    archive.refresh_many(tk.user_fills_by_time, users, session=session)
    session = exchange.session(after)
    plan = archive.plan_refresh(tk.user_fills_by_time, users, session=session)
    assert plan.accounts["why"].value_counts().to_dict() == {
        "cash did not change": 166,
        "cash changed": 34,
    }
    other = ["0x" + "e" * 40]
    archive.refresh_many(tk.user_fills_by_time, other, session=session)
    early = archive.plan_refresh(tk.user_fills_by_time, users[:1], start=0, session=session)
    assert early.accounts["why"].tolist() == ["an earlier part of the range is missing"]
    with pytest.raises(tk.ArchiveError, match="needs the history of an account"):
        archive.plan_refresh(tk.builder_orders_by_time, session=session)
    nobody = archive.plan_refresh(tk.user_fills_by_time, [], session=session)
    assert (nobody.to_ask, nobody.points, nobody.points_of_all) == ([], 2, 0)
    assert isinstance(plan.accounts["covered_until"].dtype, pd.DatetimeTZDtype)


def test_command_with_moved_asks_few_accounts(tmp_path, tiny):
    words = ("refresh", tmp_path, "userFillsByTime", "--size", "tiny", "--moved")
    first = run_command(*words, tiny.world["users"][0]).output
    assert "1 of 1 account needs a request: 12 points instead of 10" in first
    second = run_command(*words)
    assert "0 of 1 account needs a request: 2 points instead of 10" in second.output
    assert second.stdout == "userFillsByTime: 0 new, no account needs a request\n"
    found = json.loads(run_command(*words, "--json").stdout)
    assert found == {"type": "userFillsByTime", "rows": 0}
