"""Provenance of frames: the accounts they were fetched for, and what holds for their results.

Each account gets only its own funding, ledger and positions. A builder's funding frame has the rows
of every account that approved the builder. A ledger may have the rows of many accounts. Fills of
one account do not repeat its address in each row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Flags
from toolkit.completeness.merge import merge_inputs
from toolkit.frames import Provenance
from toolkit.installation import package_version
from toolkit.prepare.door import Table
from toolkit.times import Time, to_ms

SEVERAL_ACCOUNTS = (
    "{what}: the rows seem to be of several accounts ({how}), but no column names the account. "
    "Add a column user, as tk.many and tk.concat do, or pass one account at a time"
)


def finish(result: pd.DataFrame, inputs: Mapping[str, Any], **facts: Any) -> pd.DataFrame:
    """Return a result with its provenance, and with an index from 0.

    - ``inputs``: the frames by the name of the parameter; None if the parameter was not passed
    - ``**facts``: entries of the provenance, such as ``helper`` and ``by``

    The provenance is as `toolkit.completeness.merge.merge_inputs` returns it, with the version of
    this package. The ``rows`` of each input are those that were used; ``fetched_rows`` is added if
    another number was fetched.

    >>> import pandas as pd
    >>> fills, ledger = pd.DataFrame({"px": [1.0]}), pd.DataFrame({"usdc": [1.0]})
    >>> fills.attrs["toolkit"] = {"complete": "yes", "simulated": False}
    >>> ledger.attrs["toolkit"] = {"complete": "no", "simulated": True}
    >>> facts = finish(fills, {"fills": fills, "ledger": ledger}).attrs["toolkit"]
    >>> facts["complete"], facts["simulated"]
    ('no (ledger)', True)
    """
    stated = {name: frame_provenance(each) for name, each in inputs.items() if each is not None}
    merged = merge_inputs(stated)
    for name, known in merged["inputs"].items():
        if stated[name]:
            rows = len(inputs[name])
            fetched = known.pop("rows", rows)
            known |= {"rows": rows} | ({} if fetched == rows else {"fetched_rows": fetched})
    made = result.reset_index(drop=True)
    made.attrs["toolkit"] = Provenance({**merged, "toolkit_version": package_version(), **facts})
    return made


def state_provenance(
    frames: Iterable[pd.DataFrame], inputs: Mapping[str, Any], **facts: Any
) -> None:
    """Add one provenance to several results of the same inputs."""
    stated = dict(finish(pd.DataFrame(), inputs, **facts).attrs["toolkit"])
    for frame in frames:
        frame.attrs["toolkit"] = stated


def frame_provenance(frame: Any) -> dict[str, Any]:
    """Return the provenance of one frame; empty if it has none, as outside pandas."""
    facts = frame.attrs.get("toolkit") if isinstance(frame, pd.DataFrame) else None
    return dict(facts) if isinstance(facts, Mapping) else {}


def present_ms(frame: Any, at: Time | None, what: str, name: str = "at") -> int:
    """Return the present in milliseconds: `at`, or the time at which the frame was fetched.

    Raise ValueError if neither is known.
    """
    if at is not None:
        return to_ms(at)
    fetched_at = frame_provenance(frame).get("asked_at")
    if fetched_at is None:
        raise ValueError(f"{what}: the time of the fetch is not known. Pass {name}=")
    return to_ms(fetched_at)


class Owners(NamedTuple):
    """The accounts of fills, in lower case.

    - ``users``: the accounts in the column ``user``; None if the fills have no rows or no such
      column
    - ``names``: accounts that are known from elsewhere
    """

    users: Sequence[str] | None
    names: Sequence[str]


def account_names(native: Any, account: str | None = None) -> list[str]:
    """Return `account`, or else the accounts that a frame was fetched for, in lower case.

    Only pandas frames have this provenance. If a frame of several accounts lost rows since, it may
    be of any of them, and the result is empty.
    """
    if account is not None:
        return [account.lower()]
    facts = frame_provenance(native)
    parameters = facts.get("parameters")
    if not isinstance(parameters, Mapping):
        return []
    users = parameters.get("users")
    if isinstance(parameters.get("user"), str):
        users = [parameters["user"]]
    elif not isinstance(users, list | tuple) or facts.get("rows") != len(native):
        return []
    return [str(name).lower() for name in users]


def refuse_several_accounts(frame: pd.DataFrame, what: str) -> None:
    """Raise if a frame was fetched for several accounts and no longer has a column of them.

    A helper that processes the history of one account would take their rows for one chain.

    Raise ValueError if the frame was fetched for several accounts, has all its rows, and has no
    column that names the account.
    """
    facts, names, how = frame_provenance(frame), account_names(frame), ""
    parameters = facts.get("parameters")
    if {"user", "account"} & set(frame.columns) or not isinstance(parameters, Mapping):
        return
    if len(set(names)) > 1:
        how = f"fetched for {len(names)} accounts"
    elif facts.get("rows") == len(frame):  # else the user may have selected the rows of one account
        is_built = parameters.get("builder") or parameters.get("builders")
        how = "all accounts of a builder" if is_built else ""
    if how:
        raise ValueError(SEVERAL_ACCOUNTS.format(what=what, how=how))


def is_owned(table: Table, column: str, owners: Owners) -> Flags:
    """Return which rows are of the owners: the named ones, and those in the user column.

    Raise ValueError if the rows are of several accounts and the account of the fills is not known.
    """
    if not table.has(column):
        return np.ones(len(table), dtype=bool)
    names = table.text(column)
    if owners.users is not None or owners.names:
        known = {*owners.names, *(owners.users or ())} - {""}
        return names.facts(known.__contains__)
    count = len(names.present(blank=True))
    if count > 1:
        raise ValueError(
            f"{table.what}: the frame has rows of {count} accounts, but the account of the fills "
            f"is not known. Pass account=, or select its rows: "
            f"{table.what}[{table.what}.{column} == address]"
        )
    return np.ones(len(table), dtype=bool)
