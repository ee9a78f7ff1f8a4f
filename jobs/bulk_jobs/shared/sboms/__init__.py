"""Software bills of materials, and the dependency snapshots that are made of them.

`reading.py` tells which form a file has, `cyclonedx.py` and `spdx.py` read it into a `bill.py` (JSON with
`decoding.py`), and `snapshot.py` makes the manifests of a snapshot.
"""
