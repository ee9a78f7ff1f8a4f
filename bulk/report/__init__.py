"""What people and programs are told about a run that has ended, or that goes on in another process.

Reading order: `record.py` is a report, `fold.py` makes one from a ledger with `run_state.py` and `tally.py`.
`report_files.py` writes it, `render/` turns it into text, HTML and tables, and `diff/` compares two runs.
"""
