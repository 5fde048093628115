"""Subjects: the names of what has to be known to answer a request."""

import pytest

from toolkit.completeness.evidence_names import alternative_names, evidence_names
from toolkit.contract.operations import OPERATIONS

USER = "0x" + "1" * 40


def parameters_of(operation):
    values = {"coin": "BTC", "amount": 1_000.0, "users": [USER]}
    return {
        parameter.python: values.get(parameter.python, USER)
        if parameter.required
        else parameter.default
        for parameter in operation.parameters
    }


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda operation: operation.type)
def test_evidence_names_begin_with_operation(operation):
    names = evidence_names(operation, parameters_of(operation))
    assert names
    for name in names:
        assert name.split(" ")[0] == operation.type
        first, *others = alternative_names(name)
        assert first == name
        assert name not in others


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda operation: operation.type)
def test_evidence_names_ignore_requested_part(operation):
    parameters = parameters_of(operation)
    parts = {parameter.python: 7 for parameter in operation.parameters if parameter.selects_part}
    assert evidence_names(operation, parameters | parts) == evidence_names(operation, parameters)


def test_filtered_answer_has_own_evidence_name():
    operation = OPERATIONS["userFills"]
    request = parameters_of(operation)
    (every,) = evidence_names(operation, request)
    (filtered,) = evidence_names(operation, request | {"dex": "flx"})
    assert every == f"userFills {USER} all all"
    assert filtered == f"userFills {USER} all flx"
    assert alternative_names(filtered) == [filtered, every]


def test_states_have_evidence_name_per_user():
    operation = OPERATIONS["batchClearinghouseStates"]
    names = evidence_names(operation, {"users": ["a", "b"], "dex": "main"})
    assert names == [f"batchClearinghouseStates hyperliquid {user}" for user in ("a", "b")]


def test_operations_that_grow_are_histories():
    histories = {operation.type for operation in OPERATIONS.values() if operation.is_history}
    assert {"userFillsByTime", "slippageHistory", "userNonFundingLedgerUpdates"} <= histories
    assert histories.isdisjoint({"userFills", "meta", "validatorAprHistory"})
