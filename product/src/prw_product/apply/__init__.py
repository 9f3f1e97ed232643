"""Applying accepted changes: inbox, revisions, parking, projection and progress (AW-04)."""
