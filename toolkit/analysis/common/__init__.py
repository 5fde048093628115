"""Shared parts of the analysis: frames, engines, decimals, grouping, bootstrap. Private."""
