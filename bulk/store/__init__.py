"""The store: the truth about runs that several machines work on, kept in PostgreSQL. Needs the extra `cluster`.

Read `address.py` and `connections.py` (how a store is named and reached), `schema.py` (the tables of a store; the
folders `migrations` and `sql` have them in full), `runs.py`, `shards.py` and `bundles.py` (a run comes in),
`leases.py` (which worker holds a shard), `ledger.py`, `holding.py`, `groups.py`, `saved.py` and `view.py` (what was
sent and how it ended), and `export.py` (a run goes out). The folder `server` starts a private PostgreSQL.
"""
