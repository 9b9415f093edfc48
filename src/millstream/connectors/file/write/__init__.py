"""Rows become files, once per epoch."""
