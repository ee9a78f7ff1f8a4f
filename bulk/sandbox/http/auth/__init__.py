"""Authentication of callers: tokens, passwords, and the credentials of Apps."""
