"""Rulesets of organizations and of an enterprise."""
