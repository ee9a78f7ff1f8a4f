"""Reads the manifest: its jobs, settings and limits. Nothing here sends anything or opens a credential.

Reading order: `manifest.py` has the data types, `reading.py` reads a file into them, with `platform_section.py`,
`settings.py` and `jobs.py` for its parts; `derived_jobs.py` is about jobs whose items come from results of others.
"""
