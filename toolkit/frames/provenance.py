"""`tk.provenance`: where a frame comes from, and whether it is complete."""

from collections.abc import Mapping
from itertools import islice
from pprint import pformat
from typing import Any, Final

import pandas as pd

from toolkit.display import count_text, facts_table, type_text
from toolkit.public_names import publish_as

_SHOWN: Final = 10
"""If there are more subjects than this, only the first few are shown."""

_FIRST: Final = 3


@publish_as("toolkit")
class Provenance(dict[str, Any]):
    """The origin of a frame: a dict that a notebook shows as a table.

    The table shows only the first of many subjects; the dict has all of them. Frames share it:
    pandas copies `frame.attrs` deeply in nearly every operation, and the copy of a thousand names
    takes longer than the operation.
    """

    def __deepcopy__(self, memo: object) -> "Provenance":
        return self

    def __repr__(self) -> str:
        return pformat(self._shortened_facts(), sort_dicts=False, width=100)

    def _repr_html_(self) -> str:
        return facts_table("Where these rows come from", self._shortened_facts())

    def _shortened_facts(self) -> dict[str, Any]:
        return {name: _shorten_value(value) for name, value in self.items()}


@publish_as("toolkit")
def provenance(frame: pd.DataFrame) -> Provenance:
    """Return where a frame comes from, and whether it is complete.

    Parameters
    ----------
    frame : DataFrame
        A frame from a fetch function, or a frame that pandas derived from one.

    Returns
    -------
    Provenance
        A dict, shown as a table:

        - ``operation``, ``parameters``, ``numbers``, ``source``, ``simulated``, ``asked_at``:
          the request, its source and its time;
        - ``complete``: ``yes``; ``latest`` if the operation is limited to the latest rows;
          ``first n rows`` if `max_rows` cut the answer; ``no``, with ``why``;
        - ``rows``, ``pages``, ``first``, ``last``: the numbers of rows and pages, and the keys of
          the first and the last row, in the form of a cursor;
        - ``toolkit_version``: the version of this package that made the frame;
        - ``proved``, ``believed``: what the rows prove, and what the client assumes;
        - ``breaks``: places where rows contradict each other;
        - ``gaps``: places where rows may be missing or repeated;
        - ``unproved``: places where rows do not fit together, but a harmless event, such as a
          transfer, may explain it;
        - ``ties``: the number of ties (rows with one key) at the end of a page; they were fetched
          again because the page may have cut them;
        - ``requests``, ``points``: the number of requests with every retry, and their cost;
        - ``retries``: cause (a status, or a failure of the connection) -> number of retries;
        - ``waits``, ``waited_seconds``: how often and how long requests waited for the budget, or
          before a retry;
        - ``missing_fields``: columns in which values are missing although the specification says
          that every row has them -> the number of these rows. Only there if values are missing;
          in a result of `tk.concat`, a row that two frames have counts twice.

    Raises
    ------
    ValueError
        If the frame has no provenance, for example after a concat of different answers.
    TypeError
        If it is not a pandas frame.

    Examples
    --------
    >>> import toolkit as tk
    >>> tk.provenance(tk.frame("delegations", []))["operation"]
    'delegations'
    """
    if not hasattr(frame, "attrs"):
        raise TypeError(
            f"tk.provenance takes a pandas frame of a fetch function, not "
            f"{type_text(frame)}: only pandas frames have a provenance"
        )
    try:
        facts = Provenance(frame.attrs["toolkit"])
    except KeyError:
        raise ValueError(
            "this frame has no provenance: it was not fetched, or pandas dropped frame.attrs when "
            "it joined different answers. Join fetched frames with tk.concat"
        ) from None
    if facts.get("rows", len(frame)) != len(frame):
        facts["complete"] = (
            f"no longer: {count_text(len(frame), 'row')}, {facts['rows']} were fetched"
        )
    return facts


def _shorten_value(value: Any) -> Any:
    """Return a value with only the first few of many entries, such as hundreds of accounts."""
    if isinstance(value, Mapping):
        some = dict(islice(value.items(), len(value) if len(value) <= _SHOWN else _FIRST))
        more = {"...": f"{len(value) - len(some)} more"} if len(some) < len(value) else {}
        return {name: _shorten_value(item) for name, item in some.items()} | more
    if isinstance(value, list) and len(value) > _SHOWN:
        return [*value[:_FIRST], f"... {len(value) - _FIRST} more"]
    return value
