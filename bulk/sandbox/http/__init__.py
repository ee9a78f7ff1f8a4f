"""The handling that every request of the sandbox goes through, whatever it asks for."""
