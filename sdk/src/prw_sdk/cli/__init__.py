"""The command groups `prw collect` and `prw adapter`; each is loaded for itself."""
