"""The control socket of a run: how a command in another terminal looks at the run and steers it.

Read `protocol.py` (what is said), `place.py` (where the socket is), then `server.py` and `client.py`. What the verbs do
is the engine's (`bulk/engine/steering.py`).
"""
