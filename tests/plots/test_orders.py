"""Transitions and last statuses of orders."""

import pytest

import toolkit as tk


def test_several_groups_are_refused(trading_frames):
    rows = trading_frames["orders"]
    with pytest.raises(ValueError, match="one matrix"):
        tk.plots.order_transitions(tk.orders.transitions(rows, by="coin"))
    with pytest.raises(ValueError, match="one mix"):
        tk.plots.order_mix(tk.orders.mix(rows, by="coin"))
