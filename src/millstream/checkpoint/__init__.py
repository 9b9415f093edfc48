"""Checkpoints: layout, lease, evolution, repair, and readers for a pipeline that is stopped."""
