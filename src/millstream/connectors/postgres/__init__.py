"""Postgres: tables, queries and changes as rows, and rows as tables."""
