"""Administration of topics, and the topics that are marked for deletion."""
