"""The store: the truth about runs that several machines work on, kept in PostgreSQL. Needs the extra `cluster`.

Read `database/` first. A run comes in by `runs.py`, `shards.py` and `bundles.py`. `leases.py` says whose turn a shard
is, and `holding.py` what a worker has. What was sent and how it ended is kept by `ledger.py` and `groups.py` and read
by `view.py`. A run goes out by `export.py`.
"""
