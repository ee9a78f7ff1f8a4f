"""The control socket of a run: how a command in another terminal looks at the run and steers it.

Read `protocol.py` (the messages), `place.py` (where the socket is), then `server.py` and `client.py`. The engine
carries out the verbs (`bulk/engine/steering.py`).
"""
