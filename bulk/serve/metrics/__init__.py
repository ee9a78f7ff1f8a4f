"""What a monitoring system reads: OpenMetrics, over HTTP and as a file."""
