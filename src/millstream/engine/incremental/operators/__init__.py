"""The operators that keep steps of a query up to date."""
