"""Results as typed tables: one for each operation, and tables of items, runs and what the types did not foresee.

`columns.py` derives columns from declared types, `statements.py` writes the SQL, `source.py` finds the lines of a run,
`child.py` is the process that holds DuckDB, `processes.py` starts it, `asking.py` gives it tasks, and `writing.py`
makes tables of a run.
"""
