"""What collectors hand over: registrations, artifacts, captures and the receipts for them."""
