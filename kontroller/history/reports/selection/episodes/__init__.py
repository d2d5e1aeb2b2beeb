"""The worst episodes of clusters: their selection, their pictures and their stories."""
