"""Reports on a run that has ended, or that another process drives, for people and programs.

`fold.py` makes one Report (`record.py`) from a ledger: `run_state.py` says where the run stands, `tally.py` what its
items say (`tally_rows.py` is how that is stored, `active_time.py` the time in which the run was at work).
`report_files.py` writes it beside the ledger. `render/` shows reports, plans and states as text, HTML and tables;
`diff/` compares two runs.
"""
