"""Planes of the neighbours around a slab: filled from their owners, or added to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcsim.compiled import kernel
from hpcsim.parallel.ranks import block

if TYPE_CHECKING:
    from hpcsim.parallel.ranks import Ranks


class Halo:
    """`width` further planes on both sides of each rank's block of a periodic axis of n planes.

    Fields are (component, count + 2 width, …). The width may exceed the block, and even n: a plane
    then comes from a rank further away, or several times from the same one.
    """

    def __init__(self, n: int, width: int, ranks: Ranks) -> None:
        self.width = width
        self.ranks = ranks
        blocks = [block(n, rank, ranks.size) for rank in range(ranks.size)]
        owner = np.repeat(np.arange(ranks.size), [count for _, count in blocks])
        inner, outer, sent, received = [], [], [], []
        for other, (start, count) in enumerate(blocks):
            wanted = self._outside(start, count, n)
            mine = [plane for _, plane in wanted if owner[plane] == ranks.rank]
            inner += [width + plane - blocks[ranks.rank][0] for plane in mine]
            sent.append(len(mine))
            own = self._outside(*blocks[ranks.rank], n)
            theirs = [place for place, plane in own if owner[plane] == other]
            outer += theirs
            received.append(len(theirs))
        #: Local planes that are sent, and those that are received, in the order of the ranks.
        self._inner = np.array(inner, np.int64)
        self._outer = np.array(outer, np.int64)
        self._sent, self._received = np.array(sent), np.array(received)
        self._buffers: tuple[np.ndarray, np.ndarray] = (np.empty(0), np.empty(0))

    def _outside(self, start: int, count: int, n: int) -> list[tuple[int, int]]:
        """(place in the local array, global plane) of the halo of a block; none if it is empty."""
        if not count:
            return []
        places = [*range(self.width), *range(self.width + count, 2 * self.width + count)]
        return [(place, (start + place - self.width) % n) for place in places]

    def fill(self, field: np.ndarray) -> None:
        """Copy the planes of the owners into the halo."""
        leaving, arriving = self._room(field)
        take(field, self._inner, leaving)
        self._exchange(field, leaving, self._sent, arriving, self._received)
        put(arriving if self.ranks.size > 1 else leaving, self._outer, field)

    def add(self, field: np.ndarray) -> None:
        """Add the halo to the planes of the owners, in a fixed order: the adjoint of `fill`."""
        leaving, arriving = self._room(field)
        take(field, self._outer, arriving)
        self._exchange(field, arriving, self._received, leaving, self._sent)
        accumulate(leaving if self.ranks.size > 1 else arriving, self._inner, field)

    def _room(self, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Room for the planes that leave and arrive: (plane, component, …), made once."""
        plane = (len(field), *field.shape[2:])
        if self._buffers[0].shape[1:] != plane:
            self._buffers = (
                np.empty((len(self._inner), *plane)),
                np.empty((len(self._outer), *plane)),
            )
        return self._buffers

    def _exchange(
        self,
        field: np.ndarray,
        leaving: np.ndarray,
        sent: np.ndarray,
        arriving: np.ndarray,
        received: np.ndarray,
    ) -> None:
        if self.ranks.size > 1:
            plane = int(np.prod(field.shape)) // max(1, field.shape[1])
            self.ranks.comm.Alltoallv([leaving, sent * plane], [arriving, received * plane])


@kernel
def take(field: np.ndarray, planes: np.ndarray, packed: np.ndarray) -> None:
    """packed[i, c] = field[c, planes[i]]."""
    for index in range(len(planes)):
        for component in range(field.shape[0]):
            packed[index, component] = field[component, planes[index]]


@kernel
def put(packed: np.ndarray, planes: np.ndarray, field: np.ndarray) -> None:
    """field[c, planes[i]] = packed[i, c]."""
    for index in range(len(planes)):
        for component in range(field.shape[0]):
            field[component, planes[index]] = packed[index, component]


@kernel
def accumulate(packed: np.ndarray, planes: np.ndarray, field: np.ndarray) -> None:
    """field[c, planes[i]] += packed[i, c]."""
    for index in range(len(planes)):
        for component in range(field.shape[0]):
            field[component, planes[index]] += packed[index, component]
