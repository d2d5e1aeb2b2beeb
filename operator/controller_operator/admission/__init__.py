"""The optional validating webhook: it tells the API server if an object may be written or deleted."""
