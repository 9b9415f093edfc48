"""Transforms, one module per type."""
