"""Logs in Kafka's format: segments of record batches with indexes, leader epochs and producer states."""
