"""Snapshots of accepted state: objects that a projection is built from, and the leases that hold what comes after."""
