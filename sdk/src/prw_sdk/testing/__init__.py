"""What tests of adapters need: a server that misbehaves, fixtures, and the conformance suite (``pytest --adapter``)."""
