"""Provenance of results: what holds for all frames that a result was computed from."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from toolkit.completeness.merge import merge_inputs
from toolkit.frames import Provenance
from toolkit.installation import package_version
from toolkit.times import Time, to_ms


def result_provenance(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of a result.

    - ``inputs``: the frames by the name of the parameter; None if the parameter was not passed

    Returns: as `toolkit.completeness.merge.merge_inputs` returns it, with the version of this
    package. The ``rows`` of each input are those that were used; ``fetched_rows`` is added if
    another number was fetched.

    >>> import pandas as pd
    >>> fills, ledger = pd.DataFrame({"px": [1.0]}), pd.DataFrame({"usdc": [1.0]})
    >>> fills.attrs["toolkit"] = {"complete": "yes", "simulated": False}
    >>> ledger.attrs["toolkit"] = {"complete": "no", "simulated": True}
    >>> facts = result_provenance({"fills": fills, "ledger": ledger})
    >>> facts["complete"], facts["simulated"]
    ('no (ledger)', True)
    """
    merged = merge_inputs(
        {name: frame_provenance(frame) for name, frame in inputs.items() if frame is not None}
    )
    for name, facts in merged["inputs"].items():
        if stated := frame_provenance(inputs[name]):
            rows = len(inputs[name])
            fetched = stated.get("rows", rows)
            facts.pop("rows", None)
            facts |= {"rows": rows} | ({} if fetched == rows else {"fetched_rows": fetched})
    return {**merged, "toolkit_version": package_version()}


def finish(result: pd.DataFrame, inputs: Mapping[str, Any], **facts: Any) -> pd.DataFrame:
    """Return a result with its provenance, and with an index from 0.

    - ``inputs``: the frames by the name of the parameter; None if the parameter was not passed
    - ``**facts``: entries of the provenance, such as ``helper`` and ``by``
    """
    made = result.reset_index(drop=True)
    made.attrs["toolkit"] = Provenance({**result_provenance(inputs), **facts})
    return made


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
