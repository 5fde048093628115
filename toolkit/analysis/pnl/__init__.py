"""Profit and loss of accounts: attribution, equity, positions, reconciliation, the ledger."""
