"""Throwaway servers for trying things out and for tests: the real ones, started from jars, on this machine alone."""
