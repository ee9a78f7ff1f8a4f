"""Conversion of rows of the state's file into records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from bulk.sandbox.store.records import App, Installation, Organization, Repository, Token, TokenKind, User


def user(row: sqlite3.Row) -> User:
    """Return a row of `users`."""
    return User(
        row["id"], row["login"], row["name"], row["email"], bool(row["site_admin"]), bool(row["enterprise_owner"])
    )


def token(row: sqlite3.Row, users: Mapping[int, User]) -> Token:
    """Return a row of `tokens`."""
    return Token(
        row["id"],
        TokenKind(row["kind"]),
        users[row["user_id"]],
        row["organization_id"],
        frozenset(json.loads(row["scopes_json"])),
        json.loads(row["permissions_json"]),
        row["ends_at"],
        row["app_id"],
        row["installation_id"],
        _ids(row["repositories_json"]),
        bool(row["is_scoped"]),
        row["usable_at"],
        frozenset(json.loads(row["sso_json"])),
    )


def organization(row: sqlite3.Row) -> Organization:
    """Return a row of `organizations`."""
    return Organization(
        row["id"], row["enterprise_id"], row["login"], row["name"], row["description"], row["created_at"]
    )


def repository(row: sqlite3.Row) -> Repository:
    """Return a row of `repositories`."""
    return Repository(
        row["id"],
        row["organization_id"],
        row["name"],
        bool(row["private"]),
        row["description"],
        row["default_branch"],
        row["created_at"],
    )


def app(row: sqlite3.Row, user: User) -> App:
    """Return a row of `apps`, which acts as `user`."""
    settings = json.loads(row["settings_json"])
    return App(
        row["id"],
        row["client_id"],
        row["slug"],
        row["name"],
        user,
        row["secret_digest"],
        json.loads(row["permissions_json"]),
        tuple(json.loads(row["keys_json"])),
        settings["token_s"],
        settings["interval_s"],
        row["created_at"],
    )


def installation(row: sqlite3.Row) -> Installation:
    """Return a row of `installations`."""
    return Installation(
        row["id"],
        row["app_id"],
        row["organization_id"],
        json.loads(row["permissions_json"]),
        _ids(row["repositories_json"]),
        row["suspended_at"],
        row["created_at"],
    )


def _ids(text: str | None) -> frozenset[int] | None:
    return None if text is None else frozenset(json.loads(text))
