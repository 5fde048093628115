"""Transitions and last statuses of orders."""

import pandas as pd

import toolkit as tk


def test_rare_statuses_share_a_column():
    names = ["filled", "canceled", "open", "oracleRejected", "badAloPxRejected"]
    names += ["marginCanceled", "siblingFilledCanceled", "delistedCanceled", "selfTradeCanceled"]
    names += ["minTradeNtlRejected", "perpMarginRejected"]
    orders = list(range(20, 20 - len(names), -1))
    rows = pd.DataFrame({"before": "(placed)", "after": names, "orders": orders})
    ax = tk.plots.order_transitions(rows.assign(share=rows["orders"] / rows["orders"].sum()))
    columns = [text.get_text() for text in ax.get_xticklabels()]
    assert columns[-1] == "no change"
    assert {"2 other canceled", "2 other rejected"} <= set(columns)
    cells = {text.get_text() for text in ax.texts}
    assert {str(orders[7] + orders[8]), str(orders[9] + orders[10])} <= cells
