"""The rights that a route asks of its callers before its area function is called."""

from dataclasses import dataclass

from bulk.sandbox.store.records import TokenKind


@dataclass(frozen=True, slots=True)
class Access:
    """The rights that a token must have for a route; the area checks whose things a user may touch (`rights.py`).

    Attributes:
        scopes: a classic token needs one of these (wider scopes include narrower ones); empty: any token will do.
        permission: (name, `read` or `write`) for fine-grained, application and installation tokens; None: such tokens
            are refused.
        app_tokens: whether application, installation and workflow tokens may come at all.
        oauth_tokens: whether tokens of OAuth applications may come; some groups are for classic personal tokens alone.
        by: the only kind of credential that may come, one of an App's own kinds; None: any other kind.
        hidden: a token that lacks this gets 404 instead of 403.
    """

    scopes: tuple[str, ...] = ()
    permission: tuple[str, str] | None = None
    app_tokens: bool = True
    oauth_tokens: bool = True
    by: TokenKind | None = None
    hidden: bool = False
