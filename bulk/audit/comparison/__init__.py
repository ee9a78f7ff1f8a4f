"""Finds changes since each item was last read: `baseline.py` keeps the last read, and `drift.py` compares with it."""
