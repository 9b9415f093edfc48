"""Schemas of formats, translated to Arrow and back."""
