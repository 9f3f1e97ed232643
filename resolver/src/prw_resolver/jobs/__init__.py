"""The queue on PostgreSQL, the inbox of stages, dead letters."""
