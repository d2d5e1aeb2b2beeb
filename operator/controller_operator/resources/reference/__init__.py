"""The page docs/resources.md: what the models say of every field, and what people should know beside it."""
