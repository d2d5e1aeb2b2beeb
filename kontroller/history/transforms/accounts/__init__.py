"""What is taken of the journals of an epoch: which tell one account, when each account knows the state, which is chosen."""
