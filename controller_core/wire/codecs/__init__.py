"""Messages as bytes: frames, versions, and quick ways for the largest of them."""
