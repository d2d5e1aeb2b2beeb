"""FeatureSet: which levels to finalize, and what becomes of them when the object goes."""
