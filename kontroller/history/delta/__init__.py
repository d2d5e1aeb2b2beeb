"""The log by which Delta Lake's readers find a store's tables: the same files, written once and named twice."""
