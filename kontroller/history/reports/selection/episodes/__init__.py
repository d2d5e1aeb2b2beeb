"""The worst times of clusters: which they are, what is drawn of them, and what is told."""
