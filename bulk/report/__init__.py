"""What people and programs are told about a run: while it goes, and when it has ended.

A Report (`record.py`) is folded from a ledger (`fold.py`, with `run_state.py` and `tally.py`); `text.py`, `html.py`
and `report_files.py` show it, `tables.py` lists its items. `painter.py` shows a run that goes (`live.py` on a terminal,
`plain.py` elsewhere), `status_text.py` one of another process, `plan_text.py` one that has not begun. `comparison.py`
compares two runs (`field_changes.py` two values, `diff_record.py` what is said, `diff_text.py` as text). What reaches a
terminal passes through `terminal.py`; `formatting.py` writes all numbers and times.
"""
