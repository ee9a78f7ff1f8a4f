"""Credentials: where tokens come from, and how they are held so that nothing shows them."""
