"""Software bills of materials, and the dependency snapshots that are made from them.

`reading.py` finds out the form of a file, `cyclonedx.py` and `spdx.py` read JSON into a `Bill` (`bill.py`) with
`decoding.py`, `cyclonedx_xml.py` reads XML, most of it by way of `plain_xml.py`, and `snapshot.py` makes the manifests
of a snapshot.
"""
