"""A field and two operations are added to a copy of the package, and walk its whole way.

One operation is a history, the other a state.

The edits are those that CONTRIBUTING.md asks for, and no more. If a package is coupled to the table
of operations in a way that CONTRIBUTING.md does not name, this test fails.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# file -> (text that is there, text that is written before it)
EDITS = {
    # A field: one line in its record.
    "toolkit/contract/records/fills.py": (
        "    px: Annotated[",
        '    throwaway_note: Annotated[str | UnsetType, k.TEXT("a test", beyond=1)] = UNSET\n',
    ),
    # An operation: a row of the table, a fetch function, its public name, and a handler.
    "toolkit/contract/operations.py": (
        '        Operation("builderOrdersByTime",',
        """        Operation(
            "throwawayState",
            "staking",
            "What a user has delegated to validators, for a test.",
            list[r.Delegation],
            (Parameter("user", "user", "address", "account", required=True),),
            from_archive=True,
        ),
        Operation(
            "throwawayFunding",
            "funding",
            "The funding payments of a user, for a test.",
            list[r.FundingRow],
            (
                Parameter("user", "user", "address", "account", required=True),
                Parameter("startTime", "start", "time", "first time", required=True),
                Parameter("endTime", "end", "time", "last time"),
            ),
            tables=(Table(r.FundingRow, omits=("user",)),),
            key=("time", "delta.coin"),
            paging="forward",
            from_archive=True,
        ),
""",
    ),
    "toolkit/fetch/funding.py": (
        '@fetches("builderApprovedFundingByTime")',
        '''@fetches("throwawayFunding")
def throwaway_funding(
    user: str,
    start: Time = 0,
    end: Time | None = None,
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the funding payments of a user, for a test."""
    return fetch_frame(
        "throwawayFunding",
        user=user,
        start=start,
        end=end,
        numbers=numbers,
        extra=extra,
        session=session,
    )


''',
    ),
    "toolkit/fetch/staking.py": (
        '@fetches("delegations")',
        '''@fetches("throwawayState")
def throwaway_state(
    user: str, *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch what a user has delegated to validators, for a test."""
    return fetch_frame("throwawayState", user=user, numbers=numbers, extra=extra, session=session)


''',
    ),
    "toolkit/__init__.pyi": (
        "from .fetch.accounts import (",
        "from .fetch.funding import throwaway_funding as throwaway_funding\n"
        "from .fetch.staking import throwaway_state as throwaway_state\n",
    ),
    "toolkit/service/answers/__init__.py": (
        '    "delegations": (',
        '    "throwawayState": ("delegations", "user", b"[]"),\n',
    ),
    "toolkit/service/answers/accounts.py": (
        "def user_funding(",
        """def throwaway_funding(store: Store, request: CheckedRequest) -> bytes:
    return user_funding(store, request)


""",
    ),
}

WALK = """
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import toolkit as tk

folder = Path(sys.argv[1])
session = tk.local(seed=7, size="tiny")
user = session.world["users"][0]
start = session.world["start_ms"]

# fetch, frame, describe
fetched = tk.throwaway_funding(user, start)
assert len(fetched) > 10 and fetched["usdc"].abs().sum() > 0
assert tk.provenance(fetched)["complete"] == "yes"
rows = tk.info({"type": "userFunding", "user": user, "startTime": start})
expected = tk.frame("userFunding", rows)
pd.testing.assert_frame_equal(fetched, expected[fetched.columns], check_dtype=True)
assert len(tk.describe(fetched)) == len(fetched.columns)
row = {"coin": "BTC", "px": "1.0", "sz": "1.0", "side": "B", "time": 1, "oid": 1}
row["throwawayNote"] = "x"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert tk.frame("userFills", [row])["throwaway_note"].tolist() == ["x"]

# the public path, many accounts, a join
assert tk.throwaway_funding.__module__ == tk.throwaway_state.__module__ == "toolkit"
assert pickle.loads(pickle.dumps(tk.throwaway_funding)) is tk.throwaway_funding
users = session.world["users"][:2]
both = tk.many(tk.throwaway_funding, users, start)
assert both["user"].unique().tolist() == users
joined = tk.concat([tk.throwaway_funding(user, start) for user in users])
pd.testing.assert_frame_equal(joined, both)
assert tk.provenance(joined)["complete"] == "yes"
staker = next(user for user in session.world["users"] if len(tk.throwaway_state(user)))
state = tk.throwaway_state(staker)
pd.testing.assert_frame_equal(state, tk.delegations(staker))

# the command line
file = folder.with_suffix(".parquet")
script = "from toolkit.cli import app; app()"
command = [sys.executable, "-c", script, "fetch", "throwawayFunding", "--user", user]
command += ["--start", str(start), "--seed", "7", "--size", "tiny", "--out", str(file)]
done = subprocess.run(command, capture_output=True, text=True, check=False)
assert done.returncode == 0, done.stderr
assert pd.read_parquet(file)["usdc"].tolist() == fetched["usdc"].tolist()

# archive, refresh, verify
kept = tk.archive.open(folder)
for operation in (tk.throwaway_funding, tk.user_fills_by_time):
    kept.refresh(operation, user, start)
    kept.refresh(operation, user, start)
kept.refresh(tk.throwaway_state, staker)
findings = kept.verify()
assert findings == [], findings
pd.testing.assert_frame_equal(kept.frame(tk.throwaway_funding, user), fetched)
pd.testing.assert_frame_equal(kept.frame(tk.throwaway_state, staker), state)

# serve
served = tk.local(archive=folder, default=False)
again = tk.throwaway_funding(user, start, session=served)
pd.testing.assert_frame_equal(again, fetched)
pd.testing.assert_frame_equal(tk.throwaway_state(staker, session=served), state)
fills = tk.user_fills_by_time(user, start, session=served)
assert "throwaway_note" in fills and fills["throwaway_note"].isna().all()
assert not served.world["builders"], "an account was taken for a builder"

# the documents name the operation and the field
sys.path.insert(0, "docs")
import generate

requests = (
    {"type": "throwawayState", "user": staker},
    {"type": "throwawayFunding", "user": user, "startTime": start},
)
for request in requests:
    try:
        generate.documents()
    except FileNotFoundError as error:
        assert f"data/samples/{request['type']}.json" in str(error)
    sample = {"request": request, "status": 200, "response": tk.info(request)[:2]}
    Path(f"data/samples/{request['type']}.json").write_text(json.dumps(sample))
pages = json.dumps({str(page): text for page, text in generate.documents().items()})
assert all(name in pages for name in ("throwawayFunding", "throwawayState", "throwaway_note"))
print("walked")
"""


def test_new_operation_works_in_every_part(tmp_path):
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "pictures")
    for name in ("toolkit", "docs", "tests", "data"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in ("README.md", "pyproject.toml", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, copy / name)
    for name, (place, addition) in EDITS.items():
        text = (copy / name).read_text()
        assert text.count(place) == 1, f"{name} has no single {place!r}: mend EDITS"
        (copy / name).write_text(text.replace(place, addition + place))
    environment = os.environ | {"PYTHONPATH": str(copy), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    walk = subprocess.run(
        [sys.executable, "-W", "error", "-c", WALK, str(tmp_path / "archive")],
        capture_output=True,
        text=True,
        cwd=copy,
        env=environment,
        timeout=300,
        check=False,
    )
    assert walk.returncode == 0, walk.stderr[-3000:]
    assert walk.stdout.endswith("walked\n")
