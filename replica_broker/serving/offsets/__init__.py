"""The APIs about offsets of partitions: finding them, and deleting the messages before one."""
