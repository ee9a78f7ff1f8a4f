"""Commands about a run that was started before: list, watch, a page of them, pause, stop, set, resume."""
