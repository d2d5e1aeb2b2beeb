"""The cost of a fleet's history: generated journals of hundreds of clusters, and the shipped command on them."""
