"""Writes: how one without an answer is settled, and what later writes have to know of earlier ones."""
