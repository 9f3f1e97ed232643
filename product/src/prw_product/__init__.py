"""Follows accepted changes and serves the public catalogue."""
