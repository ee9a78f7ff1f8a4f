"""Runs on several machines: workers take shards of a run from a store and send; whoever submitted it waits for the end.

Read `submission.py` (a manifest becomes a run in the store), `packing.py` (what a worker gets of it), `worker.py` (one
process, one run after the other), `keeping.py` (shards come and go while the engine runs), `assignment.py` (what is in
a shard), `board.py`, `stored_waves.py` and `budgets.py` (what the workers know of each other), `folder.py` (where
a worker keeps its files), and `engine_tag.py` and `left_alone.py` (who may work on what, and when).
"""
