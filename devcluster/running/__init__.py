"""Server processes: their start and end, and the ports and folders that they own."""
