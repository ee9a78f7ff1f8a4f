"""How two runs of the same audit differ."""
