"""Columns of records and tables, and fields beyond the specification."""

from toolkit.contract import order_states
from toolkit.contract import records as r
from toolkit.contract.answers import encode
from toolkit.contract.fields import drop_beyond_fields, record_columns, table_columns
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS
from toolkit.contract.records import Fill, FundingRow, MetaRow, PositionRow


def test_every_table_has_columns():
    for operation in (OPERATIONS | EXTRA_OPERATIONS).values():
        for table in operation.tables:
            result = table_columns(table)
            names = [column.name for column in result]
            assert len(names) == len(set(names)), "two columns of one name"
            assert all(name == name.lower() for name in names)
            assert all(column.meaning for column in result)
            assert not set(table.omits) & set(names)


def test_nested_columns_have_short_names():
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


def test_clashing_column_names_have_prefixes():
    names = [column.name for column in record_columns(PositionRow)]
    assert {"type", "leverage_type", "leverage_value"} <= set(names)


def test_columns_follow_specification():
    expected = {column.name: column.expected for column in record_columns(Fill)}
    assert not expected["cloid"]  # optional
    assert not expected["twap_id"]  # null
    assert not expected["tid"]  # old recordings lack it
    assert expected["crossed"]
    assert expected["px"]


def test_flag_with_default_is_never_missing():
    (flag,) = [column for column in record_columns(MetaRow) if column.name == "only_isolated"]
    assert (flag.missing, flag.default) == (False, False)


META = r.Meta(
    universe=[
        r.PerpAsset(
            name="BTC",
            sz_decimals=5,
            max_leverage=40,
            only_isolated=False,
            margin_table_id=56,
            is_delisted=True,
            margin_mode="noCross",
            growth_mode="enabled",
        )
    ],
    margin_tables=[(56, r.MarginTable(description="tiered", margin_tiers=[]))],
    collateral_token=235,
)
BARE = b'{"universe":[{"name":"BTC","szDecimals":5,"maxLeverage":40,"onlyIsolated":false}]}'


def test_beyond_fields_are_dropped_from_copy():
    before = encode(META)
    for holder in (META, [META], (META,), {"": META}):
        bare = drop_beyond_fields(holder)
        assert type(bare) is type(holder)
        assert BARE in encode(bare)
    assert encode(META) == before


def test_every_state_has_one_group():
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
