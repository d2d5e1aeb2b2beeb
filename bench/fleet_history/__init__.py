"""What the history of a fleet costs: journals of very many clusters, made up, and the shipped command over them."""
