"""Dependency snapshots."""
