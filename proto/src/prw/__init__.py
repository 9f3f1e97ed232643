"""The contract: generated messages and stubs, and the one table of error codes."""
