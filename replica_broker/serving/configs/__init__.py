"""Alteration of configurations through this broker: the new content of a znode, and its write."""
