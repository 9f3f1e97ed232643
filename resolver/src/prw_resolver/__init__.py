"""Turns evidence into claims, decides which item each listing is, and streams accepted changes."""
