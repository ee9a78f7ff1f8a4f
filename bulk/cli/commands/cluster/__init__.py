"""Commands about a store, and about runs in it. `stored.py` is what they share with other commands."""
