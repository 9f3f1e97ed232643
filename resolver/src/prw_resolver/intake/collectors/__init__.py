"""Collector instances: their registration, their heartbeats, and what their runs came to."""
