"""The object store: a port that keeps bytes with their metadata for ever, and its adapters."""
