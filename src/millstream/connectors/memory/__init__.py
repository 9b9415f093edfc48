"""Rows that Python code holds in its hands: for programs and tests."""
