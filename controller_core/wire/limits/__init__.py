"""Limits for clients: connections, bytes, items, and rights by address."""
