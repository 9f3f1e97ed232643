"""Decides which item a record is: by rule where state and evidence leave no doubt, else by asking a person."""
