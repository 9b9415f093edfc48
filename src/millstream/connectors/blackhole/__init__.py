"""Rows that are computed, counted and forgotten."""
