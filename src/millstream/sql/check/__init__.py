"""A query without Spark: syntax, tables, columns and functions."""
