"""Files and documents around the planner: snapshots of loads, capacities, questions of what would happen, and plans."""
