"""Rotation of keys: two versions accepted while everybody moves from one to the other."""
