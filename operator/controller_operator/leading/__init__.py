"""Which of several operator processes works, and how the others are kept from writing."""
