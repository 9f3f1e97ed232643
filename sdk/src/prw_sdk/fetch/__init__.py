"""Fetching: guarded, polite, bounded GET requests whose complete answers become parts."""
