"""Topics are created, grown and deleted by request."""
