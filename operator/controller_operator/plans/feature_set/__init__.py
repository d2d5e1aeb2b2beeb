"""FeatureSet: the levels to finalize, and their fate when the object is deleted."""
