"""RebalancePlan: moves that the planner chooses."""
