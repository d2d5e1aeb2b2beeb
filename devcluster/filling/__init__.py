"""Fills the cache: the parts that commands need, and several of them fetched or built in parallel."""
