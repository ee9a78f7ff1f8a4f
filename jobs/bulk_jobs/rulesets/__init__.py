"""Rulesets of organizations, and the history of those of an enterprise."""
