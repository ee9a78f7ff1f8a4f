"""What a route asks of its callers before its area is asked."""

from dataclasses import dataclass

from bulk.sandbox.store.records import TokenKind


@dataclass(frozen=True, slots=True)
class Access:
    """What a token must bring for a route; whose things a user may touch is asked by the area (`rights.py`).

    Attributes:
        scopes: a classic token needs one of these (wider scopes include narrower ones); empty: any will do.
        permission: (name, `read` or `write`) for fine-grained, application and installation tokens; None: such tokens
            are refused.
        app_tokens: whether application, installation and workflow tokens may come at all.
        by: the one kind of credential that may come, an App's own; None: any but these.
        hidden: a token that lacks this gets 404 instead of 403.
    """

    scopes: tuple[str, ...] = ()
    permission: tuple[str, str] | None = None
    app_tokens: bool = True
    by: TokenKind | None = None
    hidden: bool = False
