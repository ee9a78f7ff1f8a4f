"""What surrounds the run of a migration: it is looked at before, and taken back afterwards.

`live_plan.py` looks at each item before the run, and `live_check.py` after it.

`undo.py` makes a manifest from what a run has left; `undo_items.py` says what becomes of each item, and `file_bytes.py`
reads the bytes that files had.
"""
