"""What surrounds the run of a migration: it is looked at and agreed to before, and taken back afterwards.

`live_plan.py` looks at each item, `plan_file.py` is what is agreed to, `planned_run.py` does exactly that.

`undo.py` makes a manifest from what a run has left; `undo_items.py` says what becomes of each item, and `file_bytes.py`
reads the bytes that files had.
"""
