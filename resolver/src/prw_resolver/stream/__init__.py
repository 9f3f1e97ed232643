"""One gapless history of accepted changes: the only way to write it, and the ways to read it."""
