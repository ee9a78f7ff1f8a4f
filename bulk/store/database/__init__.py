"""PostgreSQL: a store is named (`address.py`), reached (`connections.py`), made and brought up to date (`schema.py`).

The folder `migrations` says how its tables came about, and `sql` what is sent to it, what happens within it and who may
do what; `statements.py` reads that. `private_server.py` starts a PostgreSQL of one's own.
"""
