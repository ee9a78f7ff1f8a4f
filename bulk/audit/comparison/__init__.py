"""What has changed since each item was last read: `baseline.py` keeps what was read, `drift.py` compares with it."""
