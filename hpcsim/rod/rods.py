"""The rods of a run: what each is made of, and the joined arrays that hold their state.

Nodes of all rods follow each other on the node axis, segments on the segment axis. Rods live in
space; in a plane flow they lie in the plane z = 0 and turn about z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from hpcsim.rod import shapes
from hpcsim.rod.elastic import staggered, turn_nodes
from hpcsim.rod.tangent import bent_by_forces, carry


class Rest(Protocol):
    """The strain that a rod would like to have."""

    steady: bool

    def fill(self, t: float, out: np.ndarray) -> None:
        """Rest strain (segment, 6) at time t: stretch and shear, twist and bending [1/m]."""
        ...


@dataclass(frozen=True)
class Mechanics:
    """How a rod bends: its loads, and how its frames follow. Frames are those of nodes or segments.

    `nodal`: curvatures are those of nodes between segments, not of segments.
    """

    load: Callable[..., float]
    follow: Callable[..., None]
    nodal: bool


#: By `rod.bending`: couples spread to the fluid, or forces and frames along the tangent.
MECHANICS = {
    "couple": Mechanics(staggered, turn_nodes, nodal=False),
    "force": Mechanics(bent_by_forces, carry, nodal=True),
}


@dataclass(frozen=True)
class Rod:
    """A rod: places along it s (node) [m], segments h [m], stiffness (segment, 6, 6), rest strain.

    A closed rod has a segment more, which ends at its first node plus `closing` [m].
    """

    s: np.ndarray
    h: np.ndarray
    stiffness: np.ndarray
    rest: Rest
    mechanics: Mechanics
    closing: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @property
    def closed(self) -> bool:
        """Whether the last node is followed by the first."""
        return len(self.h) == len(self.s)


class Rods:
    """State (places r, frames R), strains, and what the rods exert on the fluid."""

    def __init__(self, rods: Sequence[Rod]) -> None:
        self.rods = tuple(rods)
        ends = np.cumsum([0, *(len(rod.s) for rod in rods)])
        segment_ends = np.cumsum([0, *(len(rod.h) for rod in rods)])
        self.nodes = [slice(*pair) for pair in pairwise(ends)]
        self.segments = [slice(*pair) for pair in pairwise(segment_ends)]
        count, segments = int(ends[-1]), int(segment_ends[-1])
        self.r, self.frames = np.zeros((count, 3)), np.zeros((count, 3, 3))
        #: By segment, (ε, κ) and (l, m): strain, rest strain, stress.
        self.strains, self.rest, self.stresses = (np.zeros((segments, 6)) for _ in range(3))
        self.force, self.couple = np.zeros((count, 3)), np.zeros((count, 3))
        #: Elastic energy of each rod at the latest load [J].
        self.energy = np.zeros(len(rods))
        self._rest_known = False

    def load(self, t: float) -> None:
        """Strains, energies, forces [N] and couples [N m] of the present state at time t."""
        for index, rod in enumerate(self.rods):
            nodes, segments = self.nodes[index], self.segments[index]
            if not (self._rest_known and rod.rest.steady):
                rod.rest.fill(t, self.rest[segments])
            self.energy[index] = rod.mechanics.load(
                self.r[nodes],
                self.frames[nodes],
                rod.h,
                rod.closing,
                self.rest[segments],
                rod.stiffness,
                self.strains[segments],
                self.stresses[segments],
                self.force[nodes],
                self.couple[nodes],
            )
        self._rest_known = True

    def move(self, r: np.ndarray, frames: np.ndarray, way: np.ndarray, turn: np.ndarray) -> None:
        """Go from some places and frames by a way [m] and a turn [rad] of each node."""
        np.add(r, way, out=self.r)
        for rod, nodes in zip(self.rods, self.nodes, strict=True):
            rod.mechanics.follow(
                self.r[nodes],
                rod.closing,
                len(rod.h),
                turn[nodes],
                frames[nodes],
                self.frames[nodes],
            )

    # ---- for output ----

    def noise_ratio(self, index: int) -> float:
        """Share of the upper third of modes in Σ e², e the curvature less that at rest.

        Modes are those of the orthonormal DCT-II along a rod, where its curvature is computed.
        """
        rod, segments = self.rods[index], self.segments[index]
        error = (self.strains - self.rest)[segments, 3:]
        if rod.mechanics.nodal and not rod.closed:
            error = error[:-1]
        count = len(error)
        phases = np.outer(np.arange(count), np.arange(count) + 0.5) * (np.pi / count)
        square = ((np.cos(phases) @ error) ** 2).sum(axis=1)
        square[0] *= 0.5  # then all modes have the same norm
        total = square.sum()
        return float(square[-(count // 3) :].sum() / total) if total > 0 and count >= 3 else 0.0

    def at_nodes(self, strains: np.ndarray) -> np.ndarray:
        """Strains (segment, 6) at nodes: means of both sides of what belongs to segments."""
        found = np.empty((len(self.r), 6))
        for rod, nodes, segments in zip(self.rods, self.nodes, self.segments, strict=True):
            found[nodes] = means(strains[segments], rod.closed)
            if rod.mechanics.nodal:
                curvature = strains[segments, 3:]
                if rod.closed:
                    found[nodes, 3:] = np.roll(curvature, 1, axis=0)
                else:
                    inner = curvature[:-1]
                    found[nodes, 3:] = np.concatenate([inner[:1], inner, inner[-1:]])
        return found

    def node_frames(self) -> np.ndarray:
        """Frames at nodes (node, 3, 3): those of segments are averaged."""
        found = self.frames.copy()
        for rod, nodes in zip(self.rods, self.nodes, strict=True):
            if rod.mechanics.nodal:
                own = self.frames[nodes][: len(rod.h)]
                found[nodes] = shapes.nearest_rotations(means(own, rod.closed))
        return found

    def activation(self, t: float, h: float) -> float:
        """Work of the moving rest strain in a step [J]: −Σ h_k (l, m)·(its change)."""
        work = 0.0
        for rod, segments in zip(self.rods, self.segments, strict=True):
            if rod.rest.steady:
                continue
            before, after = np.empty((2, len(rod.h), 6))
            rod.rest.fill(t, before)
            rod.rest.fill(t + h, after)
            work -= float(((after - before) * self.stresses[segments]).sum(axis=1) @ rod.h)
        return work


def means(values: np.ndarray, closed: bool) -> np.ndarray:
    """Values of segments at nodes: means of both sides, the one side at the ends of an open rod."""
    if closed:
        return 0.5 * (values + np.roll(values, 1, axis=0))
    padded = np.concatenate([values[:1], values, values[-1:]])
    return 0.5 * (padded[:-1] + padded[1:])
