"""Write adapters, collect sources into a durable spool, and send captures to a resolver."""
