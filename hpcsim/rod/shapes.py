"""Shapes that rods start with: places and frames of nodes, as data of s in [0, length]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: (s (node), length) → centre line (node, 3) and d1, d2 (node, 3), in the rod's own axes.
Shape = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray, np.ndarray]]


def straight(s: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Along x, d2 along y; the middle is at the origin."""
    zero, one = np.zeros_like(s), np.ones_like(s)
    return (
        np.stack([s - length / 2, zero, zero], axis=1),
        np.stack([one, zero, zero], axis=1),
        np.stack([zero, one, zero], axis=1),
    )


def ring(s: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A circle about z through all of the length, d2 to the centre."""
    phi, zero = 2 * np.pi * s / length, np.zeros_like(s)
    outwards = np.stack([np.cos(phi), np.sin(phi), zero], axis=1)
    along = np.stack([-np.sin(phi), np.cos(phi), zero], axis=1)
    return length / (2 * np.pi) * outwards, along, -outwards


SHAPES: dict[str, Shape] = {"straight": straight, "ring": ring}


def arc_length(nodes: int, length: float, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places s of the nodes and lengths h of the segments [m]: equally spaced."""
    segments = nodes if closed else nodes - 1
    return length / segments * np.arange(nodes), np.full(segments, length / segments)


def frames_of(d1: np.ndarray, d2: np.ndarray) -> np.ndarray:
    """Frames (node, 3, 3) with columns d1, d2, d1 × d2."""
    return np.stack([d1, d2, np.cross(d1, d2)], axis=2)


def misfit(frames: np.ndarray) -> float:
    """How far frames are from orthonormal: the largest entry of RᵀR − 1."""
    return float(np.abs(frames.swapaxes(1, 2) @ frames - np.eye(3)).max())


def nearest_rotations(frames: np.ndarray) -> np.ndarray:
    """The rotations closest to some frames (polar decomposition)."""
    u, _, vt = np.linalg.svd(frames)
    return u @ vt
