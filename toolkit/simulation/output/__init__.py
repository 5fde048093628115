"""The output: the tables that a service serves, built from the exchange at its end."""
