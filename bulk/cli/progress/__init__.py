"""Progress while a run goes: a live display on a terminal, lines elsewhere, JSON lines for programs."""
