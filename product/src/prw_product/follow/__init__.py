"""Following the stream of accepted changes: reading, gaps, reports and reconnecting (AW-03)."""
