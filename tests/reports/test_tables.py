"""Numbers and times as text; a missing value is never 0."""

import io
from decimal import Decimal

import pandas as pd

from tests.reports.page_content import PageContent
from toolkit.plots import formats
from toolkit.plots.formats import MINUS
from toolkit.plots.tables import Column, table
from toolkit.reports import blocks


def test_values_are_written_as_text():
    usd, time = formats.exact_usd, pd.Timestamp("2025-09-01T00:00:00.007Z")
    assert usd(Decimal("-288.070111000000000000")) == f"{MINUS}288.070111"
    assert usd(Decimal("0E-18")) == "0.00"
    assert formats.clock_time(time) == "2025-09-01 00:00:00.007"


def test_missing_value_is_dash():
    frame = pd.DataFrame({"net": [None, 0.0]}, dtype="float64")
    result = table("Net", frame, [Column("net", "net", formats.whole_dollars)])
    assert [row[0] for row in result.rows] == [formats.MISSING, "0"]


def test_saved_table_has_all_digits():
    """The files have the digits that the table does not show."""
    frame = pd.DataFrame({"coin": ["<BTC>"], "net": [Decimal("1234.567")], "other": [1]})
    columns = [Column("coin", "coin", number=False), Column("net", "net", formats.whole_dollars)]
    html = table("Net of coins", frame, columns)._repr_html_()
    page = PageContent(html)
    assert page.tables == ["coin,net\n<BTC>,1234.567\n"]
    (sheet,) = page.sheets
    assert pd.read_excel(io.BytesIO(sheet)).values.tolist() == [["<BTC>", 1234.567]]
    assert all(f'download="net-of-coins.{suffix}"' in html for suffix in ("csv", "xlsx"))
    none = PageContent(table("Net", frame.iloc[:0], columns)._repr_html_())
    assert none.tables == none.sheets == []


def test_number_columns_have_number_class():
    columns = [Column("size", "size", formats.whole_number), Column("side", "side", number=False)]
    html = table("Sizes", pd.DataFrame({"size": [1000], "side": ["buy"]}), columns)._repr_html_()
    assert '<th scope="row" class="tk-number">1,000</th><td>buy</td>' in html
    turned = table("Sizes", pd.DataFrame({"size": [1000], "side": ["buy"]}), columns[::-1])
    assert '<th scope="row">buy</th><td class="tk-number">1,000</td>' in turned._repr_html_()


def test_parameters_are_written_as_text():
    asked = {"dex": "", "users": ["0xa", "0xb"], "start": 0}
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["toolkit"] = {"operation": "meta", "parameters": asked, "complete": "yes"}
    made = blocks.provenance({"meta": frame}, {}, "a test", simulated=True)
    (source,) = made.facts["sources"]
    assert source["parameters"] == [
        'dex = ""',
        "users = 0xa, 0xb",
        "start = 1970-01-01T00:00:00.000Z",
    ]
