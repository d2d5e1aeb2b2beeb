"""The states of a log's producers, their snapshots, and transaction markers."""
