"""Removal of records that a history does not need: redundant entries of snapshots, and records that are too old."""
