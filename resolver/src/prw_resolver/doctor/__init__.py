"""Looks whether the invariants of every stream hold, and changes nothing."""
