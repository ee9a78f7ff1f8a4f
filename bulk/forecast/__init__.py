"""Forecasts when a run ends: one model for the plan, the live display and `bulk status`. Pure: no clock, I/O, chance.

Reading order: `work.py` (what is known), `course.py` (from event to event until no work is left), `flow.py` (how a job
and a budget move between two events) and `windows.py` (how long a window lasts).
"""

from bulk.forecast.course import forecast
from bulk.forecast.windows import window_length
from bulk.forecast.work import WRITE_S, Budget, Capacity, Forecast, Key, Work, with_losses

__all__ = ["WRITE_S", "Budget", "Capacity", "Forecast", "Key", "Work", "forecast", "window_length", "with_losses"]
