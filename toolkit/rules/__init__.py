"""How the exchange accounts and measures: pure functions of numbers, one topic a module."""
