"""Code security configurations, of organizations and of an enterprise, and their predecessor."""
