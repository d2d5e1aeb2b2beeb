"""The history as Spark runs it for itself: declared pipelines, and the journal's topic batch after batch."""
