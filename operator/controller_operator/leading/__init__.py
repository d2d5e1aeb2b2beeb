"""Leader election between several operator processes, and fencing of the others' writes."""
