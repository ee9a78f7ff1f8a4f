"""What surrounds the run of a migration: how it is taken back.

`undo.py` makes a manifest from what a run has left; `undo_items.py` says what becomes of each item, and `file_bytes.py`
reads the bytes that files had.
"""
