"""Times in which something could not be used, or nearly so, with their beginning and end."""
