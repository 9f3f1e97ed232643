"""The checks of the conformance suite; ``pytest --adapter NAME`` collects them."""
