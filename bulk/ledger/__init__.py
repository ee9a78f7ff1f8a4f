"""The ledger: what a run sent and how it ended, on disk, for one writer and any number of readers.

`protocol.py` says what the engine asks of a ledger; `ledger.py` writes, `view.py` reads; `directory.py` holds the run
directory; `results.py` and `saved_files.py` are the files beside the database, `database.py` is the
database itself, and `records.py` has the types of entries. `schema.sql` explains every column.
"""
