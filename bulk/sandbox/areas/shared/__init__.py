"""Code that several areas use."""
