"""Benchmarks: one program a claim, each against a floor or a peer at the same work.

``python -m bench.NAME`` runs one whole, with ``--quick`` in under a minute; its last line is one JSON object with the
ratios. Rounds of the sides alternate, and a ratio is of medians, since machines are noisy.
"""
