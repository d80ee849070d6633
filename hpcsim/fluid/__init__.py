"""Incompressible flow in a periodic box: operators, projection, convection, additive steps."""
