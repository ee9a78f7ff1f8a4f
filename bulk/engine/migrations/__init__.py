"""Looks at the items of a migration before and after its run, and takes the run back.

`live_plan.py` looks at each item before the run, and `live_check.py` after it.

`undo.py` makes a manifest from what a run has left; `undo_items.py` says what becomes of each item, and `file_bytes.py`
reads the bytes that files had.
"""
