"""Answers of the controller about the cluster and about itself, like those of a broker."""
