"""The operations that ship with Bulk, one file for each resource, found through the entry points `bulk.operations`.

They do no I/O and import only the interface of Bulk for operations (such as `bulk.operation`, `bulk.model` and
`bulk.urls`). The smallest is `rate_limit.py`; `contents.py` shows everything an operation can have. The code that
several of them share is in `shared/`: `names.py` (types and forms of names), `refusals.py`, `pages.py` (lists), and for
files `files/blobs.py`, `files/file_reads.py`, `files/path_state.py` and `files/file_writes.py`.
"""
