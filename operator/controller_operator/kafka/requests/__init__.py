"""What is asked of a cluster's controller, and what comes of it: a module for each kind of request."""
