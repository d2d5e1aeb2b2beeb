"""The tables declared to Spark Declarative Pipelines, each by a call of a transform."""
