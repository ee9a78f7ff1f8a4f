"""Manifests and items: read, check, index, stream, plan. Nothing here sends anything or opens a credential.

Reading order: `manifest.py` (the words) → `reading.py` → `checking.py` → `streams.py` → `plan.py`.
"""
