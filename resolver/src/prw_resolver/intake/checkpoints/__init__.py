"""Checkpoints of collectors that keep nothing between runs."""
