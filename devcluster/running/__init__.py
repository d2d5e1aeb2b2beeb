"""Processes, the ports and folders that are theirs, and how they end."""
