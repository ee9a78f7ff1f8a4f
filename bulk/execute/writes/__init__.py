"""Writes: how they are sent and settled, and what later ones have to know of earlier ones."""
