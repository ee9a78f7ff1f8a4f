"""Commands about a store, and about runs in it. `stored.py` and `stored_status.py` are what they share, also with
`bulk runs` and `bulk status`."""
