"""One object at a time: which one is next, which cluster it gets, and what its plan comes to."""
