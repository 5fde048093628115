"""The binary snapshots. Specification, "Snapshot endpoints (compressed binary)".

`decode_snapshots` returns columns by name instead of records, because half a million records would
cost more time than everything else. The columns are those of the operation's record. They have one
row for each account or TWAP of every snapshot in the answer, in its order:

===========  ==================================================================
family       type of the column
===========  ==================================================================
number       ``numpy`` float64; a missing value is NaN
integer      ``numpy`` int64; Arrow int64 with nulls if values may be missing
time         ``numpy`` int64, milliseconds; the smallest int64 if a value is missing
flag         ``numpy`` bool; Arrow bool with nulls if values may be missing
text, iso    Arrow large_string; a missing value is null
nested       Arrow ``list<struct<token: large_string, available: double>>``
===========  ==================================================================

Unknown values are further columns of text, after the known ones: ``entry.<name>`` for a value of an
entry, and ``snapshot.<name>`` for a value of the snapshot, which all of its rows repeat. The
name is the key, or ``value_8`` for the value at place 8 of a tuple. The texts of ``entry.<name>``
are made when the column is read, so that values which nobody reads cost almost nothing.

`encode` is the inverse. `pack` and `assemble` are its two halves, for a service that compresses a
snapshot once and sends it many times.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolkit.errors import AnswerInvalid

if TYPE_CHECKING:
    from toolkit.contract.operations import Operation

__all__ = [
    "LIMIT",
    "SnapshotColumns",
    "WireAccountSnapshot",
    "WireTwapSnapshot",
    "assemble",
    "decode_snapshots",
    "encode",
    "pack",
]

LIMIT: Final = 1 << 30
"""The default limit of the bytes that the snapshots of one answer may have, decompressed."""

SnapshotColumns = Mapping[str, Any]
"""Column name -> its values, with the types of the table above."""


class WireAccountSnapshot(NamedTuple):
    """The accounts of one collateral token, as they are on the wire.

    - ``snapshot_id``: its identifier
    - ``collateral_token``: the token, with ``<dex>:`` in front if it is about one dex
    - ``users``: address -> (account_value, total_long_notional, total_short_notional, is_unified,
      account_mode), and for portfolio-margin users also pm_ratio, pm_avail_by_branch as pairs of
      token and number, pm_total_account_value
    """

    snapshot_id: str
    collateral_token: str
    users: Mapping[str, tuple[Any, ...]]

    @staticmethod
    def read_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
        """Return the columns of the accounts of several snapshots."""
        from toolkit.contract.snapshots.account_values import account_columns

        return account_columns(payloads, limit)


class WireTwapSnapshot(NamedTuple):
    """The TWAPs of one market, as they are on the wire.

    - ``snapshot_id``: its identifier
    - ``market_name``: the market, with ``<dex>:`` in front on builder-deployed dexes
    - ``twaps``: 21 values each, in the order of the specification
    """

    snapshot_id: str
    market_name: str
    twaps: Sequence[tuple[Any, ...]]

    @staticmethod
    def read_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
        """Return the columns of the TWAPs of several snapshots."""
        from toolkit.contract.snapshots.twaps import twap_columns

        return twap_columns(payloads, limit)


_WIRE_TYPES: Final[dict[str, type[WireAccountSnapshot | WireTwapSnapshot]]] = {
    "accountValueSnapshots": WireAccountSnapshot,
    "perpTwapSnapshots": WireTwapSnapshot,
}
"""Type of operation -> its snapshots on the wire."""


def decode_snapshots(
    operation: "Operation", headers: Mapping[str, str], content: bytes, *, limit: int = LIMIT
) -> SnapshotColumns:
    """Return the columns of the snapshots of an answer.

    Parameters
    ----------
    operation : Operation
        accountValueSnapshots or perpTwapSnapshots.
    headers : mapping
        HTTP headers; ``x-payload-format`` says whether there are several snapshots.
    content : bytes
        The body, compressed or already decompressed by the HTTP library.
    limit : int
        The most bytes of all snapshots together, decompressed. The memory stays below a small
        multiple of it, whatever the bytes are.

    Returns
    -------
    mapping of str to array
        The columns of the operation's record, with the types at the top of this module.

    Raises
    ------
    AnswerInvalid
        If the bytes are not snapshots of this kind; the message says what is wrong and where.

    Warns
    -----
    UnknownField
        Once for each operation and unknown value.
    MissingField
        Once for each operation and value of the specification that is missing.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> accounts = OPERATIONS["accountValueSnapshots"]
    >>> users = {"0x" + "a" * 40: (150.5, 100.0, 0.0, False, 0)}
    >>> headers, body = encode(accounts, [WireAccountSnapshot("s1", "USDC", users)])
    >>> decode_snapshots(accounts, headers, body)["account_value"]
    array([150.5])
    """
    # pyarrow and msgpack are imported only if there is a snapshot to read.
    from toolkit.contract.snapshots.envelope import open_envelope
    from toolkit.contract.snapshots.unknown_values import LazyColumns

    try:
        payloads = open_envelope(headers, content, limit)
        return LazyColumns(_WIRE_TYPES[operation.type].read_columns(payloads, limit))
    except AnswerInvalid as error:
        error.operation = operation.type
        raise


def encode(
    operation: "Operation",
    snapshots: Sequence[WireAccountSnapshot | WireTwapSnapshot],
    *,
    level: int = 1,
) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer with snapshots.

    - ``operation``: accountValueSnapshots or perpTwapSnapshots
    - ``snapshots``: at least one snapshot; their number decides the format
    - ``level``: the level of the compression; 3 takes more than twice the time of 1

    Returns: headers and body.

    Raise TypeError or ValueError if there is no snapshot, or one does not have the form of the
    specification.
    """
    snapshot_type = _WIRE_TYPES[operation.type]
    for snapshot in snapshots:
        if not isinstance(snapshot, snapshot_type):
            raise TypeError(
                f"{operation.type} needs {snapshot_type.__name__}s, not {type(snapshot).__name__}"
            )
    return assemble([pack(snapshot, level=level) for snapshot in snapshots])


def pack(snapshot: WireAccountSnapshot | WireTwapSnapshot, *, level: int = 1) -> bytes:
    """Return one snapshot in the array form, as MessagePack compressed with zstd."""
    from toolkit.contract.snapshots.envelope import pack_snapshot

    if isinstance(snapshot, WireAccountSnapshot):
        return pack_snapshot(snapshot, snapshot.users.values(), (5, 8), level)
    return pack_snapshot(snapshot, snapshot.twaps, (21,), level)


def assemble(blobs: Sequence[bytes]) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer with packed snapshots.

    - ``blobs``: at least one result of `pack`
    """
    from toolkit.contract.snapshots.envelope import assemble_answer

    return assemble_answer(blobs)
