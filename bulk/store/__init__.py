"""The store: the truth about runs that several machines work on, kept in PostgreSQL. Needs the extra `cluster`.

Read `address.py` and `connections.py` (how a store is named and reached), `schema.py` with `migrations/` and
`sql/functions.sql` (what stands in it, and what happens within it), `runs.py`, `shards.py` and `bundles.py` (a run comes
in), `leases.py` (whose turn a shard is), `ledger.py`, `holding.py` and `view.py` (what was sent and how it ended), and
`export.py` (a run goes out). `private_server.py` starts a PostgreSQL of one's own.
"""
