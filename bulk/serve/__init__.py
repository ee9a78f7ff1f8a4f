"""The page for the fleet: every run below some folders, what each of them does, and steering.

Read `server.py` (what is answered where), `guard.py` (who may ask), `fleet.py` (which runs there are, and where they
stand), then what is shown of one: `run_page.py`, `plots.py`, `items.py` with `search_index.py`. `steer.py` does what a
person asks for, and `metrics/` is for machines. What a browser gets stands in `assets/`.

A run is never harmed by its spectators: ledgers are only read, and a run is steered through its control socket alone.
"""
