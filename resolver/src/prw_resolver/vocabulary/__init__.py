"""Classes, attribute definitions and their versions, normalisers, identity rules, and the pure making of keys."""
