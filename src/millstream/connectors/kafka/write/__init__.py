"""Rows become messages, exactly once."""
