"""Building the projection anew from an export, beside the one that serves, and cutting over (ADR-004)."""
