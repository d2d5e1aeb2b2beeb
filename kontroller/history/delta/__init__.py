"""Delta Lake's log for a store's tables. Delta's readers use the same files, which are written once."""
