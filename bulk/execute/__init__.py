"""The life of one item, from the moment in which a worker takes it to the moment in which its outcome is durable.

Reading order: `workers.py` (the loop of a worker), `item_runner.py` and `item_run.py` (the steps of one item),
`write_loop.py` (a write until it is decided), `requests/` (one request with its retries), `writes/` (what happened to a
lost answer), `hand_over.py` and `recorder.py` (the way to disk).
"""
