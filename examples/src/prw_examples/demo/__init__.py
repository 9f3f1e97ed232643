"""The demo: the whole walk on the example street, as processes of their own, and an audit of what it came to."""
