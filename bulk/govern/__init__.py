"""Decides when a request may leave, by budgets, pauses, concurrency and credentials: one permit at a time.

Reading order: `governor.py` gives permits. `permits/` holds credentials and their permit queues, `budgets/` what is
left of each bucket, `concurrency/` how many requests may be in flight. `reactions.py` says what an answer means for
the requests after it, and `rate_limit_poller.py` asks the platform what is left.
"""
