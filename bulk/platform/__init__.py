"""The platform as the engine meets it: the one place where requests leave, and what answers mean.

Reading order: `transport.py` (one request, one answer or failure) with `http1.py` below it, `classification.py` (what
an answer means; pure), `bodies/` (how bodies are read), `auth/` (tokens), `cache/` (answers that have not changed).
"""
