"""Incompressible flow in a periodic box as a model: case, run, pictures."""
