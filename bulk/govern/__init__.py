"""Decides when a request may leave, by budgets, pauses, concurrency and credentials: one permit at a time.

Reading order: `governor.py` gives permits. `permits/` holds credentials and their permit queues, `budgets/` the rest of
each bucket, `concurrency/` the limit of requests in flight. `reactions.py` has an answer change the requests after it,
and `rate_limit_poller.py` asks the platform for its limits.
"""
