"""Credentials as the governor sees them: who waits for leave to send, and what each answer says of what is left."""
