"""Migrations of a schema that is only for these tests."""
