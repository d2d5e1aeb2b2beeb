"""Configurations that are altered through this broker: what a znode shall hold then, and the write of it."""
