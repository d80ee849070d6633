"""Geometrically exact rods: rotations, strains, forces and couples."""
