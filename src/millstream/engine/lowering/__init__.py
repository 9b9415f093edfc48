"""A plan becomes DataFrames and registered functions."""
