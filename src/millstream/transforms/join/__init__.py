"""Joins of streams in time, and of a stream with a table."""
