"""What people and programs are told about a run: while it goes, and when it has ended.

A Report (`record.py`) is folded from a ledger (`report.py`, with `standing.py` and `tally.py`); `text.py`, `html.py`
and `files.py` show it, `tables.py` lists its items. `progress.py` shows a run that goes (`live.py` on a terminal,
`plain.py` elsewhere), `status_text.py` one of another process, `plan_text.py` one that has not begun. `diff.py`
compares two runs (`diff_fields.py` two values, `diff_record.py` what is said, `diff_text.py` as text). What reaches a
terminal passes through `terminal.py`; `figures.py` writes all numbers and times.
"""
