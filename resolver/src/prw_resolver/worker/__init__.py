"""Walks captures through their stages, one job a capture."""
