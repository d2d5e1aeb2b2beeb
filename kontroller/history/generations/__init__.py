"""What a store is at a moment: which folders its tables are in, who may change that, and what is left of before."""
