"""Queries to brokers in the background: the progress of moves, disk usage, and throttles."""
