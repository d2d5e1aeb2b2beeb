"""Topic rules: the file that has them, and their expressions in CEL."""
