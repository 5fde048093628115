"""Profit and loss of accounts."""
