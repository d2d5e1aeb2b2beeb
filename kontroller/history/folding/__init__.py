"""How the layers are made of what was taken in, and which of them are made again."""
