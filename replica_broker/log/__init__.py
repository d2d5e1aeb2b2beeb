"""Logs as Kafka keeps them: segments of record batches with their indexes, epochs of leaders, states of producers."""
