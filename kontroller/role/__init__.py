"""The move of the controller's role: a picture of the role, the obstacles, and the move itself."""
