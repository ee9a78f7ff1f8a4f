"""Runs on several machines: workers claim shards of a run in a store and send their requests; `bulk submit` may wait.

Read `submission.py` (a manifest becomes a run in the store), `packing.py` (the parts of a manifest that workers get),
`worker.py` (one process, one run after the other), `keeping.py` (shards come and go while the engine runs),
`assignment.py` (the items of a shard), `board.py`, `stored_waves.py` and `budgets.py` (how the workers know of each
other), `stored_state.py` (where such a run stands, as if one process drove it), `folder.py` (where a worker keeps its
files), and `engine_tag.py` and `left_alone.py` (which runs a worker may work on, and when).
"""
