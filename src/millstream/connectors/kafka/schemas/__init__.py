"""Schemas from a registry: which one a message was written with, and which one rows are written with."""
