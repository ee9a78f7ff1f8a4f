"""The embedded platform: a real HTTP server on loopback that behaves like the specification, for rehearsals and tests.

It imports nothing of the engine. `running` serves inside this process, `serve` until a signal comes; `server.py`
explains how it is built and how an area is added.
"""

from bulk.sandbox.server import Sandbox, opened, running, serve
from bulk.sandbox.settings import DEFAULT_RATE_LIMITS, FAULT_KINDS, ExtraToken, RateLimit, SettingError, Settings

__all__ = [
    "DEFAULT_RATE_LIMITS",
    "FAULT_KINDS",
    "ExtraToken",
    "RateLimit",
    "Sandbox",
    "SettingError",
    "Settings",
    "opened",
    "running",
    "serve",
]
