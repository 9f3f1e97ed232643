"""Generated from the contract by proto/generate.py; do not edit."""
