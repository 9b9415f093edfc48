"""Clients of outside systems, one module each: how to reach them, how they fail, when to try again."""
