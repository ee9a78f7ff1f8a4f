"""Virtual time for tests: that of the rehearsals."""

from bulk.engine.rehearsal.virtual_time import START, VirtualClock, VirtualLoop, run_virtual

__all__ = ["START", "VirtualClock", "VirtualLoop", "run_virtual"]
