"""The history in Spark's own runners: declared pipelines, and batches of the journal's topic."""
