"""Figures, each a ratio to hand-written PySpark in the same run. `make bench` prints them; nothing here is a test.

One file per question. Every measurement of ours and of theirs is a process of its own, taken in turns, and the median counts.
"""
