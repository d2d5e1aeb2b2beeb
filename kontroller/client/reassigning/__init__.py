"""Partitions that move between brokers: the moves themselves, how much is left of one, and its throttle."""
