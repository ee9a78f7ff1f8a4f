"""Where a run stands, for everybody who looks: `snapshot.py` puts it together."""
