"""What others must allow: the budget that the owner of a cluster grants, and the approval of another person."""
