"""Folding: the layers are made of the raw records, as far as these changed."""
