"""What happens to every request of the sandbox, whatever it asks for."""
