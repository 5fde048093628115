"""Tables of all accounts of a simulated exchange, as frames with exact numbers."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa

import toolkit as tk
from toolkit.client import open_session
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, KeyQuotas, build_store

EXACT = pd.ArrowDtype(pa.decimal128(36, 18))


@dataclass(frozen=True)
class Everybody:
    """All tables of a world; `user` and `account` name the account of each row."""

    fills: pd.DataFrame
    funding: pd.DataFrame
    ledger: pd.DataFrame
    states: Any  # accounts, positions, failed
    contexts: pd.DataFrame
    snapshots: list[pd.DataFrame]
    times: list[int]


def everybody(world, users=None):
    """Return the tables of some accounts, or of all."""
    session = served(world, users)
    names = session.world["users"] if users is None else users
    asked = {"numbers": "exact", "session": session}
    sources = world.sources
    mine = set(names)
    paid = msgspec.json.decode(
        msgspec.json.encode([row for row in sources.funding if row.user in mine])
    )
    contexts = [tk.meta_and_asset_ctxs(dex=dex, **asked) for dex in session.world["dexes"]]
    return Everybody(
        fills=tk.many(tk.user_fills_by_time, names, start=0, **asked),
        funding=tk.frame("builderApprovedFundingByTime", paid, numbers="exact"),
        ledger=tk.many(tk.user_non_funding_ledger_updates, names, start=0, **asked),
        states=tk.batch_clearinghouse_states(names, dex="ALL_DEXES", **asked),
        contexts=pd.concat(contexts, ignore_index=True),
        snapshots=[_snapshot(snapshot.values, mine) for snapshot in sources.account_snapshots],
        times=[snapshot.time for snapshot in sources.account_snapshots],
    )


def served(world, users=None):
    """Serve this very world in process, whatever worlds are kept on disk; of some users only."""
    sources = replace(world.sources, orders=[], slippage=[])
    if users is not None:
        mine = set(users)
        fills = [pair for pair in sources.fills if pair[0] in mine]
        sources = replace(sources, fills=fills, funding=[])
    store = build_store(sources, None, world=world.session_facts())
    application = application_of(store, KeyQuotas([AcceptedKey("local", "key")]))
    return open_session(
        "http://local",
        "key",
        transport=InProcessTransport(application),
        label=store.about["label"],
        simulated=True,
        world=store.about["world"],
        now_ms=application.now_ms,
        default=False,
    )


def _snapshot(values, mine):
    rows = [
        (f"{dex or 'hyperliquid'}:{token}", row.user, row.account_mode, row.account_value)
        for (dex, token), each in values.items()
        for row in each
        if row.user in mine
    ]
    names = ["collateral_token", "user", "account_mode", "account_value"]
    frame = pd.DataFrame(rows, columns=names)
    frame["account_value"] = [Decimal(repr(value)) for value in frame["account_value"]]
    return frame.astype({"user": "str", "collateral_token": "str", "account_value": EXACT})


def floats(frame):
    """Return the frame with floats instead of exact numbers."""
    exact = [name for name, dtype in frame.dtypes.items() if str(dtype).startswith("decimal")]
    return frame.astype(dict.fromkeys(exact, "float64"))
