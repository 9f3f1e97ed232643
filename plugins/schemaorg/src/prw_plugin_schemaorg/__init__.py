"""An adapter for shop pages that carry schema.org or OpenGraph product markup."""
