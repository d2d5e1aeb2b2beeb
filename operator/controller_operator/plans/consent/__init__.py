"""The consent of others: the budget that the owner of a cluster grants, and the approval of another person."""
