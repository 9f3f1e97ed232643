"""The product database's migrations, in the order of their numbers."""
