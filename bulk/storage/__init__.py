"""Shared by everything that writes to disk: private files, threads for blocking work, inserts of many rows; and child
processes."""
