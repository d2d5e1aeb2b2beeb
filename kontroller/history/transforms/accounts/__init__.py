"""The choice between the journals of an epoch: their grouping into accounts, the coverage of each, and the parts to
use."""
