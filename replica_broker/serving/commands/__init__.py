"""The commands of the controller and of transaction coordinators, in each version that they may send."""
