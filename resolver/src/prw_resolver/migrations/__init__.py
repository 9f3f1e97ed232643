"""The resolver's schema, one plain SQL file a step."""
