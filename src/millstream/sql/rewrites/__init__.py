"""How a query is cut into windowed aggregates and the rest, in its text."""
