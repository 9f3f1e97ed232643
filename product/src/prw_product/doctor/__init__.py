"""Looks whether the invariants of a projection hold, and changes nothing."""
