"""Webhooks of organizations, and the deliveries of their events."""
