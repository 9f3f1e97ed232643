"""The durable spool: a ledger in SQLite, and the bytes of every response in content-addressed files."""
