"""Log directories of brokers: their disks, the sizes and places of replicas, and the bytes left of a move."""
