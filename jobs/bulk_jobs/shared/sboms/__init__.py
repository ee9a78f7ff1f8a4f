"""Software bills of materials, and the dependency snapshots that are made of them.

`reading.py` tells which form a file has, `cyclonedx.py` and `spdx.py` read JSON into a `bill.py` with `decoding.py`,
`cyclonedx_xml.py` reads XML, most of it by way of `plain_xml.py`, and `snapshot.py` makes the manifests of a snapshot.
"""
