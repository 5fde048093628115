"""Numbers and times as text; a missing value is never 0."""

import io
from decimal import Decimal

import pandas as pd

from tests.reports.page_content import PageContent
from toolkit.plots import formats
from toolkit.plots.formats import MINUS
from toolkit.reports import tables
from toolkit.reports.blocks import describe_frames
from toolkit.reports.tables import TextColumn, table


def test_values_are_written_as_text():
    usd, time = tables.exact_usd, pd.Timestamp("2025-09-01T00:00:00.007Z")
    assert usd(Decimal("-288.070111000000000000")) == f"{MINUS}288.070111"
    assert usd(Decimal("0E-18")) == "0.00"
    assert tables.time_text(time) == "2025-09-01 00:00:00.007"
    assert tables.yes_no(False) == "no"


def test_missing_value_is_dash():
    frame = pd.DataFrame({"net": [None, 0.0]}, dtype="float64")
    result = table("Net", frame, [TextColumn("net", "net", formats.whole_dollars)])
    assert [row[0] for row in result.rows] == [formats.MISSING, "0"]


def test_saved_table_has_all_digits():
    """The files have the digits that the table does not show."""
    frame = pd.DataFrame({"coin": ["<BTC>"], "net": [Decimal("1234.567")], "other": [1]})
    columns = [
        TextColumn("coin", "coin", tables.plain_text, False),
        TextColumn("net", "net", formats.whole_dollars),
    ]
    html = table("Net of coins", frame, columns)._repr_html_()
    page = PageContent(html)
    assert page.tables == ["coin,net\n<BTC>,1234.567\n"]
    (sheet,) = page.sheets
    assert pd.read_excel(io.BytesIO(sheet)).values.tolist() == [["<BTC>", 1234.567]]
    assert all(f'download="net-of-coins.{suffix}"' in html for suffix in ("csv", "xlsx"))
    none = PageContent(table("Net", frame.iloc[:0], columns)._repr_html_())
    assert none.tables == none.sheets == []


def test_number_columns_have_number_class():
    columns = [
        TextColumn("size", "size", formats.whole_number),
        TextColumn("side", "side", tables.plain_text, False),
    ]
    html = table("Sizes", pd.DataFrame({"size": [1000], "side": ["buy"]}), columns)._repr_html_()
    assert '<th scope="row" class="number">1,000</th><td>buy</td>' in html
    turned = table("Sizes", pd.DataFrame({"size": [1000], "side": ["buy"]}), columns[::-1])
    assert '<th scope="row">buy</th><td class="number">1,000</td>' in turned._repr_html_()


def test_parameters_are_written_as_text():
    asked = {"dex": "", "users": ["0xa", "0xb"], "start": 0}
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["toolkit"] = {"operation": "meta", "parameters": asked, "complete": "yes"}
    (source,) = describe_frames({"meta": frame})
    assert source.parameters == ['dex = ""', "users = 0xa, 0xb", "start = 1970-01-01T00:00:00.000Z"]
