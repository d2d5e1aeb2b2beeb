"""Creation, growth and deletion of topics on request."""
