"""Shared parts of the analysis: account values, bootstrap, estimates, shrinkage. Private."""
