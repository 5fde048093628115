"""Slippage and depth of order books."""
