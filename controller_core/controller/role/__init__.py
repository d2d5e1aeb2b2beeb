"""Who becomes the controller: whether this process should, and how it takes and leaves the role."""
