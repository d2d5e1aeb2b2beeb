"""The measurement of service levels in the intervals of partitions."""
