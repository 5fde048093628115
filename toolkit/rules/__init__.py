"""The exchange's arithmetic that several packages use: pure functions of numbers, by topic."""
