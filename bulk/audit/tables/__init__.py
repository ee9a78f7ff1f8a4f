"""Results as typed tables: one for each operation, and tables of items, runs and what the types did not foresee.

`columns.py` derives columns from declared types, `statements.py` writes the SQL, `source.py` finds the lines of a run,
`child.py` is the process that holds DuckDB, `asking.py` starts it, `writing.py` makes tables of a run.
"""
