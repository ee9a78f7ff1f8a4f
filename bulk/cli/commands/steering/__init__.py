"""Commands about a run that was started before: list, watch, pause, stop, set, resume."""
