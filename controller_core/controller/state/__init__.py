"""What the present controller knows of its cluster, in memory, and questions about all of it."""
