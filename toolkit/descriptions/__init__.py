"""Descriptions of operations, frames and results, in words."""
