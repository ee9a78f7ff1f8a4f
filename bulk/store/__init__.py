"""The store: the truth about runs that several machines work on, kept in PostgreSQL. Needs the extra `cluster`.

Reading order:

- `address.py` and `connections.py`: the way to a store.
- `schema.py`: the tables of a store; the folders `migrations` and `sql` have them in full.
- `submissions.py`, `shards.py` and `bundles.py`: a run comes in. `runs.py`: what people do with it. `leases.py`:
  workers hold shards.
- `ledger.py`, `holding.py`, `groups.py`, `saved.py` and `view.py`: intents, outcomes and results.
- `export.py`: a run goes out. The folder `server` starts a private PostgreSQL.
"""
