"""The binary snapshots. Specification, "Snapshot endpoints (compressed binary)".

`decode` gives columns by name instead of records, since half a million records would cost
more than everything else. Each column of the operation's record is there, all of the same
length, one row for each account or TWAP of every snapshot in the answer, in its order:

===========  ==================================================================
family       type of the column
===========  ==================================================================
number       ``numpy`` float64; what is missing is NaN
integer      ``numpy`` int64; Arrow int64 with nulls where it may be missing
time         ``numpy`` int64, milliseconds; the smallest where it is missing
flag         ``numpy`` bool; Arrow bool with nulls where it may be missing
text, iso    Arrow large_string; null where it is missing
nested       Arrow ``list<struct<token: large_string, available: double>>``
===========  ==================================================================

`encode` is the other side. `pack` and `assemble` are its two halves, for a service that
compresses a snapshot once and answers with it many times.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolkit.errors import AnswerInvalid

if TYPE_CHECKING:
    from toolkit.contract.operations import Operation

__all__ = [
    "LIMIT",
    "AccountValueSnapshot",
    "Columns",
    "TwapSnapshot",
    "assemble",
    "decode",
    "encode",
    "pack",
]

LIMIT: Final = 1 << 30
"""Most bytes that the snapshots of one answer may have when decompressed, by default."""

Columns = Mapping[str, Any]
"""Column name -> its values, as the table above says."""


class AccountValueSnapshot(NamedTuple):
    """The accounts of one collateral token, as they travel.

    Parameters
    ----------
    snapshot_id : str
        Its identifier.
    collateral_token : str
        The token, ``<dex>:`` in front where one dex is meant.
    users : mapping of str to tuple
        Address -> (account_value, total_long_notional, total_short_notional, is_unified,
        account_mode), and for portfolio-margin users also pm_ratio, pm_avail_by_branch as
        pairs of token and number, pm_total_account_value.
    """

    snapshot_id: str
    collateral_token: str
    users: Mapping[str, tuple[Any, ...]]


class TwapSnapshot(NamedTuple):
    """The TWAPs of one market, as they travel.

    Parameters
    ----------
    snapshot_id : str
        Its identifier.
    market_name : str
        The market, ``<dex>:`` in front on builder-deployed dexes.
    twaps : sequence of tuple
        21 values each, in the order of the specification.
    """

    snapshot_id: str
    market_name: str
    twaps: Sequence[tuple[Any, ...]]


def decode(
    operation: "Operation", headers: Mapping[str, str], content: bytes, *, limit: int = LIMIT
) -> Columns:
    """Read the snapshots of an answer into columns.

    Parameters
    ----------
    operation : Operation
        accountValueSnapshots or perpTwapSnapshots.
    headers : mapping
        HTTP headers; ``x-payload-format`` tells one snapshot from several.
    content : bytes
        The body, still compressed or already decompressed by the HTTP library.
    limit : int
        Most bytes of all snapshots together, decompressed. Memory stays within a small
        multiple of it whatever the bytes are.

    Returns
    -------
    mapping of str to array
        The columns of the operation's record; the types stand at the top of this module.

    Raises
    ------
    AnswerInvalid
        If the bytes are no snapshots of this kind; it says what is wrong and where.

    Warns
    -----
    UnknownField
        Once for each operation and value that this version does not know.
    MissingField
        Once for each operation and value that is not there, although the specification has it.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> accounts = OPERATIONS["accountValueSnapshots"]
    >>> users = {"0x" + "a" * 40: (150.5, 100.0, 0.0, False, 0)}
    >>> headers, body = encode(accounts, [AccountValueSnapshot("s1", "USDC", users)])
    >>> decode(accounts, headers, body)["account_value"]
    array([150.5])
    """
    from toolkit.contract.snapshots.accounts import account_columns
    from toolkit.contract.snapshots.payload import payloads
    from toolkit.contract.snapshots.twaps import twap_columns

    read = {"accountValueSnapshots": account_columns, "perpTwapSnapshots": twap_columns}
    try:
        return read[operation.type](payloads(headers, content, limit), limit)
    except AnswerInvalid as error:
        error.operation = operation.type
        raise


def encode(
    operation: "Operation",
    snapshots: Sequence[AccountValueSnapshot | TwapSnapshot],
    *,
    level: int = 1,
) -> tuple[dict[str, str], bytes]:
    """Write snapshots as an answer.

    Parameters
    ----------
    operation : Operation
        accountValueSnapshots or perpTwapSnapshots.
    snapshots : sequence of AccountValueSnapshot or of TwapSnapshot
        At least one; their number decides the format.
    level : int
        Of the compression; 3 takes more than twice the time of 1.

    Returns
    -------
    tuple of dict and bytes
        Headers and body.

    Raises
    ------
    TypeError, ValueError
        If there is no snapshot, or one is not of the form that the specification gives.
    """
    wanted = {"accountValueSnapshots": AccountValueSnapshot, "perpTwapSnapshots": TwapSnapshot}
    kind = wanted[operation.type]
    for one in snapshots:
        if not isinstance(one, kind):
            raise TypeError(f"{operation.type} has {kind.__name__}s, not {type(one).__name__}")
    return assemble([pack(one, level=level) for one in snapshots])


def pack(snapshot: AccountValueSnapshot | TwapSnapshot, *, level: int = 1) -> bytes:
    """Write one snapshot in the array form: zstd of MessagePack."""
    from toolkit.contract.snapshots.writing import packed

    if isinstance(snapshot, AccountValueSnapshot):
        return packed(snapshot, snapshot.users.values(), (5, 8), level)
    return packed(snapshot, snapshot.twaps, (21,), level)


def assemble(blobs: Sequence[bytes]) -> tuple[dict[str, str], bytes]:
    """Put packed snapshots into one answer: its headers and its body.

    Parameters
    ----------
    blobs : sequence of bytes
        From `pack`, at least one.
    """
    from toolkit.contract.snapshots.writing import assembled

    return assembled(blobs)
