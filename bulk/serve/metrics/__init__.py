"""Figures for monitoring systems: OpenMetrics over HTTP, and a text file."""
