"""The answers of the history, one question per module. docs/pipeline.md defines each of them."""
