"""Frames of answers and rows that the caller has, such as the answer of `tk.info`."""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from types import GenericAlias
from typing import Any, get_args, get_origin

import pandas as pd

from toolkit.contract.answers import answer_rows, decode, encode
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.fields import is_record, record_fields
from toolkit.contract.operations import VIEWS, Operation, find_operation
from toolkit.contract.records import ClearinghouseState, Record
from toolkit.contract.value_kinds import Numbers
from toolkit.display import type_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.frames.collect import Collector, Extra
from toolkit.public_names import publish_as


@publish_as("toolkit")
def frame(
    kind: str | Mapping[str, object] | type[Record],
    rows: object,
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
) -> pd.DataFrame | tuple[pd.DataFrame, ...]:
    """Return a typed frame of wire rows, which are JSON objects.

    Parameters
    ----------
    kind : str, mapping or Record
        One of:

        - the ``type`` of an operation, also of one that only `tk.info` can send, such as
          ``userFunding``
        - the request of the answer, as `tk.info` sends it, for frames whose rows name its ``user``
          or ``dex``, and for helpers, which then know the account
        - ``"marginTables"``
        - a record class of `toolkit.contract.records`
    rows : list or dict
        Rows as on the wire, or the complete answer of an operation.
    numbers : {"float", "exact", "text"}, default "float"
        The form of numbers.
    extra : {"drop", "keep"}, default "drop"
        Whether unknown fields are left out or become columns of text.

    Returns
    -------
    DataFrame or named tuple of DataFrame
        A tuple if the answer of the operation has several tables, such as ``pairs`` and ``tokens``
        of ``spotMeta``. If the rows are as many as one answer can have, a `HistoryWarning` says so,
        and ``complete`` is ``no``.

    Raises
    ------
    AnswerInvalid
        If a row breaks the contract; the error names column, row and value.
    ValueError
        If there is no such operation, or no record describes its answer.
    TypeError
        If the kind is neither text nor a record, if the record contains rows, if the rows are a
        frame, or if they are only a part of the answer.

    Examples
    --------
    >>> import toolkit as tk
    >>> row = {"validator": "0x" + "0" * 40, "amount": "1.5", "lockedUntilTimestamp": 0}
    >>> tk.frame("delegations", [row])["amount"].tolist()
    [1.5]
    """
    request = kind if isinstance(kind, Mapping) else {}
    operation = _operation_of(request.get("type") if request else kind)
    fields = record_fields(operation.tables[0].record) if is_record(kind) else ()
    if parts := [field.name for field in fields if field.kind.family == "rows"]:
        raise TypeError(
            f"{operation.type} is not a row; it contains rows ({', '.join(parts)}). Pass the type "
            "of the operation whose answer it is"
        )
    if hasattr(rows, "columns"):
        if {"ntl", "closedPnl", "dir"} <= {*map(str, rows.columns)}:
            raise TypeError(
                "this is the table of the exchange's web page. It lacks the side, the position "
                "before and the ids of its fills, and its closedPnl is net of fees: fetch the "
                "fills instead"
            )
        raise TypeError(f"rows are JSON objects as on the wire, not {type_text(rows)}")
    if operation.view and isinstance(rows, list):
        raise TypeError(
            f"{operation.view} is a part of the answer of {operation.type}. Pass this whole answer"
        )
    kinds = {get_origin(part) for part in (operation.answer, *get_args(operation.answer))}
    is_one_record = not kinds & {list, tuple} and len(operation.tables) == 1
    plain = operation.binary or (isinstance(rows, list) and is_one_record)
    if plain:
        operation = _stand_in(operation.tables[0].record, operation.type)
    parameters = _parameters_of(operation, request, rows)
    answer = decode(operation, 200, {}, encode(rows), numbers=numbers, parameters=parameters)
    collector = Collector(operation, numbers, extra)
    collector.add((answer,) if plain else answer_rows(operation, answer, parameters))
    facts: dict[str, Any] = {"operation": operation.type}
    facts |= {"view": operation.view} if operation.view else {}
    facts |= {"source": "rows", "numbers": numbers}
    if isinstance(rows, list) and (cut := cut_facts(operation, len(rows))):
        facts |= cut
        warn_caller(f"{operation.type}: {cut['why']}", HistoryWarning)
    if isinstance(request.get("user"), str):
        facts["parameters"] = {"user": request["user"]}
    frames = collector.frames(facts)
    names = tuple(table.name for table in operation.tables)
    return frames[0] if len(frames) == 1 else _name_frames(operation.type, names, frames)


def cut_facts(operation: Operation, rows: int) -> dict[str, str]:
    """Return provenance of an answer that may be cut: it has as many rows as one can have."""
    if operation.latest or rows != operation.most_rows or not rows:
        return {}
    rest = (
        "Ask again from the time of the last row, and drop the rows that you have"
        if "startTime" in operation.by_wire
        else "Nobody can ask for older rows: keep what you fetch"
    )
    words = f"an answer has at most {operation.most_rows:,} rows, so rows may be missing"
    return {"complete": "no", "why": f"{words}. {rest}"}


def _name_frames(kind: str, names: tuple[str, ...], frames: Sequence[Any]) -> tuple[Any, ...]:
    named: tuple[Any, ...] = _tuple_type(kind, names)._make(frames)
    return named


@cache
def _tuple_type(kind: str, names: tuple[str, ...]) -> Any:
    make: Any = namedtuple
    made = make(kind[0].upper() + kind[1:], names)
    made.__reduce__ = lambda frames: (_name_frames, (kind, names, tuple(frames)))  # for pickle
    return made


def _operation_of(kind: Any) -> Operation:
    if is_record(kind):
        return _stand_in(kind)
    if not isinstance(kind, str):
        raise TypeError(
            "kind must be the type of an operation, such as 'userFunding', a request with its "
            f"type, or a record, not {kind!r}"
        )
    operation = VIEWS.get(kind) or find_operation(kind)
    if operation is None or not operation.tables:
        raise ValueError(
            f"tk.frame cannot make a frame of {kind!r}. Use the answer of tk.info, or "
            "pandas.json_normalize. tk.describe() lists the operations that have functions"
        )
    return operation


def _parameters_of(operation: Operation, request: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """Return what is known of the request of an answer, with Python names.

    States keyed by dex can only come from a request for ALL_DEXES, so `dex` is known even without
    the request.
    """
    named = operation.by_wire.items()
    parameters = {parameter.python: request[wire] for wire, parameter in named if wire in request}
    if operation.answer_by_dex is not None and not request and isinstance(answer, Mapping):
        pairs = answer.get("successful_states") or ()
        states = [pair[1] for pair in pairs if isinstance(pair, list | tuple) and len(pair) > 1]
        state = next((state for state in states if isinstance(state, Mapping) and state), None)
        if state and not state.keys() & {*ClearinghouseState.__struct_encode_fields__}:
            parameters["dex"] = ALL_DEXES
    return parameters


def _stand_in(record: type[Record], name: str = "") -> Operation:
    """Return a placeholder operation whose answer is a list of rows of one record type."""
    return Operation(name or record.__name__, "", "", GenericAlias(list, record))
