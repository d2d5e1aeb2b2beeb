"""The process of a recorder: what can be set, whom it looks at, what it tells of itself, and its life from start to end."""
