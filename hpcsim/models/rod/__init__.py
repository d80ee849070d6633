"""Elastic rods in a flow as a model: case, run, pictures."""
