"""The accepted state: items with their keys, listings, merchants, observations and releases."""
