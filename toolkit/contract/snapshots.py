"""The binary snapshots. Specification, "Snapshot endpoints (compressed binary)"."""

from collections.abc import Mapping
from typing import Any

from toolkit.contract.operations import Operation
from toolkit.errors import AnswerInvalid

__all__ = ["decode"]


def decode(operation: Operation, headers: Mapping[str, str], content: bytes) -> Any:
    """Read the snapshots of an answer."""
    raise AnswerInvalid("snapshots cannot be read yet", operation=operation.type)
