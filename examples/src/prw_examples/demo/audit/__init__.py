"""The demo's own check: figures that are computed from both databases, the stored bytes and the truth file."""
