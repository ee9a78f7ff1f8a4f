"""Posts a message to an address of Apprise, as a program that is given both on its standard input.

Apprise reads the whole answer of a service, and waits as long as bytes come. A service that gives one each second, or
gives them without end, would hold up a night for ever, or take all memory: so a process of its own posts, which has
little memory and which `sending.py` ends.
"""

import contextlib
import importlib
import logging
import resource
import sys
from typing import Final

import msgspec

UNKNOWN: Final = 3
"""The exit code where Apprise does not know that kind of address; 0: the message was taken; any other: it was not."""

MOST_REDIRECTS: Final = 3
"""How often an address may lead to another one (count): a loop would get the message, and its secrets, 30 times."""

MOST_MEMORY_BYTES: Final = 1 << 30


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """What is posted: the address, which is a secret, and the message."""

    url: str
    title: str
    body: str


def main() -> int:
    """Post what standard input says, and return the exit code."""
    post = msgspec.json.decode(sys.stdin.buffer.read(), type=Post)
    with contextlib.suppress(OSError, ValueError):  # a lower limit is there already, or the system has none
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    import apprise

    # Apprise gives no way to say so, and comes with requests, of which it makes a session for each message
    vars(importlib.import_module("requests.sessions"))["DEFAULT_REDIRECT_LIMIT"] = MOST_REDIRECTS
    logging.disable()  # its log names addresses
    target = apprise.Apprise()
    if not target.add(post.url):
        return UNKNOWN
    return 0 if target.notify(title=post.title, body=post.body) else 1


if __name__ == "__main__":
    sys.exit(main())
