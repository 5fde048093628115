"""What has to be known to answer a request.

A history is known by its operation and its subject. Any other answer is known by its request,
without the parameters that only filter the answer. Each history and each such request has a name,
such as ``"meta flx"``, under which `toolkit.contract.source_tables.Evidence` lists it.
"""

import itertools
from collections.abc import Mapping
from typing import Any, Final

from toolkit.contract.dexes import ALL_DEXES, dex_name_in, strip_native_dex
from toolkit.contract.extra_operations import known_operation
from toolkit.contract.operations import Operation, Parameter, subject_text

__all__ = ["alternative_names", "evidence_names"]

_UNFILTERED: Final = "all"


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
    >>> from toolkit.contract.operations import OPERATIONS
    >>> evidence_names(OPERATIONS["meta"], {"dex": ""})
    ['meta hyperliquid']
    >>> evidence_names(OPERATIONS["meta"], {"dex": "flx"})
    ['meta flx']
    >>> evidence_names(OPERATIONS["batchClearinghouseStates"], {"dex": "", "users": ["a", "b"]})
    ['batchClearinghouseStates hyperliquid a', 'batchClearinghouseStates hyperliquid b']
    """
    each = [
        _subject_values(parameter, parameters[parameter.python])
        for parameter in _subject_parameters(operation)
    ]
    return [" ".join([operation.type, *values]) for values in itertools.product(*each)]


def alternative_names(name: str) -> list[str]:
    """Return the names of answers that contain the named answer; `name` itself is the first.

    Examples
    --------
    >>> alternative_names("meta flx")
    ['meta flx', 'metaAndAssetCtxs flx']
    >>> alternative_names("batchClearinghouseStates flx a")
    ['batchClearinghouseStates flx a', 'batchClearinghouseStates ALL_DEXES a']
    >>> alternative_names("userFills a all flx")
    ['userFills a all flx', 'userFills a all all']
    """
    type, *values = name.split(" ")
    operation = known_operation(type)
    if operation.part_of:
        return [name, *alternative_names(" ".join([operation.part_of, *values]))]
    for place, parameter in enumerate(_subject_parameters(operation)):
        if _is_filter(parameter):
            values[place] = _UNFILTERED
        elif parameter.python == "dex" and operation.answer_by_dex is not None:
            values[place] = ALL_DEXES
    return list(dict.fromkeys([name, " ".join([type, *values])]))


def _subject_parameters(operation: Operation) -> list[Parameter]:
    named = {parameter.python: parameter for parameter in operation.parameters}
    return [named[name] for name in operation.subject]


def _is_filter(parameter: Parameter) -> bool:
    """Return whether the parameter only filters the answer."""
    return not parameter.required and parameter.default is None


def _subject_values(parameter: Parameter, value: Any) -> list[str]:
    if isinstance(value, list):
        return value
    if _is_filter(parameter) and not value:
        return [_UNFILTERED]
    if parameter.python == "dex":
        return [dex_name_in("rows", value or "")]
    return [strip_native_dex(subject_text(value))]
