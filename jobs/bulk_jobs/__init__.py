"""The operations that ship with Bulk, one file for each resource, found through the entry points `bulk.operations`.

They do no I/O and import nothing of Bulk but its words (`bulk.operation`, `bulk.model`, `bulk.urls`). The smallest is
`rate_limit.py`; `contents.py` shows everything an operation can have. What several of them know is in `names.py`
(types and forms of names), `blobs.py`, `files.py` and `path_state.py` (reading files), `file_writes.py`, `refusals.py`.
"""
