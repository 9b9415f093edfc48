"""The test kit: run a pipeline with given rows, and compare what reaches its sinks and nodes."""

from millstream.testing.kit import run, session

__all__ = ["run", "session"]
