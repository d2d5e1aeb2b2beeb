"""The page docs/resources.md: the models' descriptions of every field, and further advice for people."""
