"""Ends a process together with the one that started it, whose pipe is its standard input."""

import os
import signal
import threading

STDIN = 0


def end_with_stdin() -> None:
    """Have this process ended by SIGTERM when its standard input ends; nothing else may read that from now on."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(STDIN, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
