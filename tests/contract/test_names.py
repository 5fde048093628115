"""Names of dexes, order states, columns and kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract import dexes, order_states
from toolkit.contract.columns import record_columns, table_columns
from toolkit.contract.kinds import EXACT_PRECISION, EXACT_SCALE, field_note
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, MetaRow, PositionRow

ALIASES = ["", "native", "main_dex", "main", "hyperliquid"]


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("place", dexes.NATIVE_NAMES)
def test_native_dex_aliases(name: str, place: str) -> None:
    assert dexes.canonical_dex(name) == ""
    assert dexes.dex_name_in(place, name) == dexes.NATIVE_NAMES[place]


@given(st.from_regex(r"[a-z]{2,6}", fullmatch=True), st.sampled_from(list(dexes.NATIVE_NAMES)))
def test_other_dexes_keep_their_name(dex: str, place: str) -> None:
    if dex not in ALIASES:
        assert dexes.canonical_dex(dex) == dex
        assert dexes.dex_name_in(place, dex) == dex
        assert dexes.coin_dex(dexes.join_coin(dex, "GOLD")) == dex
        assert dexes.join_coin(dex, dexes.join_coin(dex, "GOLD")) == f"{dex}:GOLD"


@pytest.mark.parametrize("coin", ["BTC", "@107", "#1024", "PURR/USDC"])
@pytest.mark.parametrize("name", ALIASES)
def test_native_coins_have_no_prefix(coin: str, name: str) -> None:
    assert dexes.join_coin(name, coin) == coin
    assert dexes.coin_dex(coin) == ""


def test_every_state_has_one_group() -> None:
    listed = [state for group in order_states.GROUPS.values() for state in group]
    assert len(listed) == len(set(listed)) == 25
    assert all(
        order_states.order_state_group(state) in order_states.GROUPS
        for state in order_states.STATES
    )
    assert {
        state: order_states.order_state_group(state) for state in order_states.UPSTREAM_STATES
    } == (order_states.UPSTREAM_STATES)
    assert order_states.order_state_group("neverHeardOf") == "unknown"


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_every_table_has_columns(operation: object) -> None:
    for table in operation.tables:  # type: ignore[attr-defined]
        made = table_columns(table)
        names = [column.name for column in made]
        assert len(names) == len(set(names)), "two columns of one name"
        assert all(name.islower() or name == name.lower() for name in names)
        assert all(column.meaning for column in made)
        assert not set(table.omits) & set(names)


def test_nested_columns_have_short_names() -> None:
    assert [column.name for column in record_columns(FundingRow)][3:] == [
        "type",
        "coin",
        "usdc",
        "szi",
        "funding_rate",
        "n_samples",
    ]
    (rate,) = [column for column in record_columns(FundingRow) if column.name == "funding_rate"]
    assert (rate.path, rate.wire) == ("delta.funding_rate", "delta.fundingRate")


def test_clashing_columns_have_prefixes() -> None:
    names = [column.name for column in record_columns(PositionRow)]
    assert {"type", "leverage_type", "leverage_value"} <= set(names)


def test_only_key_columns_are_never_missing() -> None:
    for record, keys in {
        Fill: {"coin", "px", "sz", "side", "time", "oid"},
        FundingRow: {"time", "coin", "usdc"},
        LedgerUpdate: {"time", "type"},
        PositionRow: {"user", "coin", "szi"},
    }.items():
        assert {column.name for column in record_columns(record) if not column.missing} == keys


def test_columns_follow_specification() -> None:
    expected = {column.name: column.expected for column in record_columns(Fill)}
    assert not expected["cloid"]  # optional
    assert not expected["twap_id"]  # null
    assert not expected["tid"]  # old recordings lack it
    assert expected["crossed"]
    assert expected["px"]


def test_flag_with_default_is_never_missing() -> None:
    (flag,) = [column for column in record_columns(MetaRow) if column.name == "only_isolated"]
    assert (flag.missing, flag.default) == (False, False)


def test_exact_numbers_can_be_added() -> None:
    assert EXACT_PRECISION <= 36
    assert 0 < EXACT_SCALE < EXACT_PRECISION


def test_field_without_annotation_has_no_note() -> None:
    assert field_note(int) is None
