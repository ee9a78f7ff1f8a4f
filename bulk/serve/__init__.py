"""The page for the fleet: every run below some folders, with its state and its steering.

Read `server.py` (the addresses and their answers), `guard.py` (which requests are let in), `fleet.py` (the runs and
their states), then the modules for the page of one run: `run_page.py`, `plots.py`, `items.py` with `search_index.py`.
`steer.py` does what a person asks for, and `metrics/` is for monitoring systems. `page_files.py` gives a browser the
files in `assets/`.

A run is never harmed by its spectators: ledgers are only read, and a run is steered through its control socket alone.
"""
