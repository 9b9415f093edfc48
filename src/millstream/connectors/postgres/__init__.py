"""Postgres: rows in, exactly once, and rows out, changes included."""
