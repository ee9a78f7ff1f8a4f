"""The engine as a library (interface.md §6): `engine.py` (Engine), `synchronous.py` (run and map without async)."""
