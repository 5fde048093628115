"""Where a result comes from: what is true of all of its inputs, not of the first one only."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

# True of a fetched frame alone: a result has other rows, and came on no page.
_OF_FETCHING = (
    "rows",
    "pages",
    "ties",
    "first",
    "last",
    "requests",
    "points",
    "retries",
    "waits",
    "waited_seconds",
)
_IF_COMMON = ("source", "numbers")
_UNKNOWN = "unknown"


def joint(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Say where a result of these inputs comes from.

    Parameters
    ----------
    inputs : mapping of str to DataFrame
        The frames by the name of the parameter; those that are None were not given.

    Returns
    -------
    dict
        - ``inputs``: what each frame says of itself, its ``rows`` as used (``fetched_rows``,
          where these are others); empty where it says nothing;
        - ``simulated``: whether any of them is;
        - ``complete``: as they all say, or else which of them says what, e.g.
          ``"no (ledger)"``; a frame that does not say is ``unknown``;
        - ``source``, ``numbers``, where they are the same for all.

    Examples
    --------
    >>> import pandas as pd
    >>> fills, ledger = pd.DataFrame({"px": [1.0]}), pd.DataFrame({"usdc": [1.0]})
    >>> fills.attrs["toolkit"] = {"complete": "yes", "simulated": False}
    >>> ledger.attrs["toolkit"] = {"complete": "no", "simulated": True}
    >>> facts = joint({"fills": fills, "ledger": ledger})
    >>> facts["complete"], facts["simulated"]
    ('no (ledger)', True)
    """
    each = {name: _facts(frame) for name, frame in inputs.items() if frame is not None}
    common = {
        key: values[0]
        for key in _IF_COMMON
        if (values := [facts.get(key) for facts in each.values()])
        and all(value is not None and value == values[0] for value in values)
    }
    return {
        **common,
        "simulated": any(bool(facts.get("simulated")) for facts in each.values()),
        "complete": _complete(each),
        "inputs": each,
    }


def _facts(frame: Any) -> dict[str, Any]:
    known = frame.attrs.get("toolkit") if isinstance(frame, pd.DataFrame) else None
    if not isinstance(known, Mapping):
        return {}
    facts = {key: value for key, value in known.items() if key not in _OF_FETCHING}
    fetched = known.get("rows", len(frame))
    other = {} if fetched == len(frame) else {"fetched_rows": fetched}
    return {**facts, "rows": len(frame), **other}


def _complete(each: Mapping[str, Mapping[str, Any]]) -> str:
    states = {name: str(facts.get("complete", _UNKNOWN)) for name, facts in each.items()}
    if len(set(states.values())) == 1:
        return next(iter(states.values()))
    return ", ".join(f"{state} ({name})" for name, state in states.items() if state != "yes")
