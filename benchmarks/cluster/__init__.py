"""What a large run takes that several workers do."""
