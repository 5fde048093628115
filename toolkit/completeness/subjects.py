"""What has to be known to answer a request.

A history is known by its operation and its subject. Any other answer is known by the request, less
the parameters that only choose a part of it. Both have a name, such as ``"meta flx"``, under which
`toolkit.contract.sources.Evidence` lists them.
"""

from collections.abc import Mapping
from typing import Any, Final

from toolkit.contract.dexes import ALL_DEXES, dex_name_in, strip_native_dex
from toolkit.contract.operations import Operation

__all__ = [
    "PART_PARAMETERS",
    "alternative_names",
    "evidence_names",
    "history_subject",
    "is_history",
]

PART_PARAMETERS: Final = frozenset({"start", "end", "cursor", "page_size", "max_rows"})
"""Parameters that choose a part of an answer, and do not change what it is about."""


def is_history(operation: Operation) -> bool:
    """Return whether an operation answers with a history that only grows at its end."""
    return operation.paging in ("cursor", "open cursor", "forward")


def history_subject(operation: Operation, parameters: Mapping[str, Any]) -> str:
    """Return the subject of a history: an account, a builder, or a coin and an amount.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> slippage = get_operation("slippageHistory")
    >>> history_subject(slippage, {"coin": "BTC", "amount": 1000.0, "start": 0})
    'BTC 1000'
    """
    values = (
        parameters[parameter.python]
        for parameter in operation.parameters
        if parameter.required and parameter.python not in PART_PARAMETERS
    )
    return " ".join(
        f"{value:.15g}" if isinstance(value, int | float) else str(value) for value in values
    )


def evidence_names(operation: Operation, parameters: Mapping[str, Any]) -> list[str]:
    """Return the names of everything that has to be known to answer a request.

    Parameters
    ----------
    operation : Operation
        The operation of the request.
    parameters : mapping
        Python name -> value, with every default filled in.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> evidence_names(get_operation("meta"), {"dex": ""})
    ['meta hyperliquid']
    >>> evidence_names(get_operation("meta"), {"dex": "flx"})
    ['meta flx']
    """
    dex = dex_name_in("rows", parameters.get("dex") or "")
    match operation.type:
        case "batchClearinghouseStates":
            return [f"{operation.type} {dex} {user}" for user in parameters["users"]]
        case "meta" | "metaAndAssetCtxs" | "perpDexLimits":
            return [f"{operation.type} {dex}"]
        case "userFills":  # its filters choose which rows are the latest
            filters = (parameters["builder"] or "all", dex if parameters["dex"] else "all")
            return [f"{operation.type} {parameters['user']} {' '.join(filters)}"]
        case _:
            subject = strip_native_dex(history_subject(operation, parameters))
            return [f"{operation.type} {subject}".strip()]


def alternative_names(name: str) -> list[str]:
    """Return the names of answers that contain what `name` stands for, itself first.

    Examples
    --------
    >>> alternative_names("meta flx")
    ['meta flx', 'metaAndAssetCtxs flx']
    """
    type, *rest = name.split(" ")
    match type:
        case "meta":
            return [name, " ".join(["metaAndAssetCtxs", *rest])]
        case "batchClearinghouseStates":
            return [name, f"{type} {ALL_DEXES} {rest[-1]}"]
        case "userFills":
            return [name, f"{type} {rest[0]} all all"]
        case _:
            return [name]
