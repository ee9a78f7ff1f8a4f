"""Runs on several machines: workers claim shards of a run in a store and send their requests; `bulk submit` may wait.

Reading order:

- `submission.py`: a manifest becomes a run in the store. `packing.py`: the parts of a manifest that workers get.
- `worker.py`: one process, one run after the other. `keeping.py`: shards come and go while the engine runs.
- `assignment.py`: the items of a shard.
- `board.py`, `stored_waves.py` and `budgets.py`: what the workers know of each other.
- `stored_state.py`: the state of such a run, as if one process drove it.
- `folder.py`: the files of a worker. `engine_tag.py` and `left_alone.py`: the runs that a worker may work on.
"""
