"""Releases, the public assignment of listings, and the pointer to the serving generation."""
