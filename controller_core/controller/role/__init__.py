"""Election of the controller: when this process stands for the role, takes it, and leaves it."""
