"""`kontroller history serve`: the latest report over HTTP, and its service levels as metrics."""
