"""Kernels that spread a point over a grid, as data: pieces of |x| from one basis of functions.

A kernel φ is even, and on each piece, with a = |x|,

    φ = Σ_j p_j a^j + (α + β a) √Q(a − s) + γ arcsin(L(a − s)) + c cos(πa/2 + d)

Q and L are one polynomial and one line for all pieces of a kernel. One compiled function serves all
kernels and gives the derivative too. Dilated by an integer m, φ becomes φ(x/m)/m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcsim.compiled import inlined

POWERS = 8  # of a in the polynomials p, at most
TERMS = 6  # α, β, s, γ, c, d


@dataclass(frozen=True)
class Piece:
    """φ for a up to `end`, starting where the piece before ends."""

    end: float
    polynomial: Sequence[float] = ()
    root: tuple[float, float] = (0.0, 0.0)  #: α, β
    shift: float = 0.0
    arcsine: float = 0.0
    cosine: tuple[float, float] = (0.0, 0.0)  #: c, d


@dataclass(frozen=True)
class Kernel:
    """Pieces of φ, and what is known of it.

    `continuity`: number of continuous derivatives; `moments`: sums over the grid reproduce
    polynomials below this degree; `balanced`: even and odd points each carry half of the sum;
    `squares`: Σ φ² where it does not depend on the position.
    """

    pieces: tuple[Piece, ...]
    continuity: int
    moments: int
    balanced: bool = False
    interpolating: bool = False
    squares: float | None = None
    radicand: Sequence[float] = (1.0,)  #: coefficients of Q
    line: tuple[float, float] = (0.0, 0.0)  #: L(y) = line[0] + line[1] y

    @property
    def width(self) -> int:
        """Number of grid points below the kernel."""
        return round(2 * self.pieces[-1].end)

    @cached_property
    def table(self) -> np.ndarray:
        """The data as rows of numbers: one per piece, then Q, then L."""
        rows = np.zeros((len(self.pieces) + 2, 1 + POWERS + TERMS))
        for row, piece in zip(rows, self.pieces, strict=False):
            row[0] = piece.end
            row[1 : 1 + len(piece.polynomial)] = piece.polynomial
            row[1 + POWERS :] = (*piece.root, piece.shift, piece.arcsine, *piece.cosine)
        rows[-2, : len(self.radicand)] = self.radicand
        rows[-1, :2] = self.line
        return rows


@inlined
def value_and_slope(table: np.ndarray, x: float) -> tuple[float, float]:
    """φ(x) and φ'(x) of the kernel of a table."""
    a, sign = abs(x), 1.0 if x >= 0.0 else -1.0
    pieces = len(table) - 2
    k = 0
    while k < pieces and a > table[k, 0]:
        k += 1
    if k == pieces:
        return 0.0, 0.0
    row = table[k]
    value, slope = 0.0, 0.0
    for j in range(POWERS, 0, -1):
        slope = slope * a + value
        value = value * a + row[j]
    alpha, beta, y = row[1 + POWERS], row[2 + POWERS], a - row[3 + POWERS]
    if alpha != 0.0 or beta != 0.0:
        q, dq = 0.0, 0.0
        for j in range(table.shape[1] - 1, -1, -1):
            dq = dq * y + q
            q = q * y + table[pieces, j]
        root = math.sqrt(q)
        value += (alpha + beta * a) * root
        slope += beta * root + (alpha + beta * a) * dq / (2.0 * root)
    gamma = row[4 + POWERS]
    if gamma != 0.0:
        line = table[pieces + 1, 0] + table[pieces + 1, 1] * y
        value += gamma * math.asin(line)
        slope += gamma * table[pieces + 1, 1] / math.sqrt(1.0 - line * line)
    c = row[5 + POWERS]
    if c != 0.0:
        phase = 0.5 * math.pi * a + row[6 + POWERS]
        value += c * math.cos(phase)
        slope -= 0.5 * math.pi * c * math.sin(phase)
    return value, sign * slope


def _times(first: Sequence[float], second: Sequence[float]) -> tuple[float, ...]:
    """Product of two polynomials."""
    return tuple(np.convolve(first, second))


_HAT = (2 / 3, 0.0, -1.0, 1 / 2), (8 / 6, -12 / 6, 6 / 6, -1 / 6)  # the cubic B-spline
_WL2 = (27 / 17, 0.0, -30 / 17)
_WL4 = (170010 / 80347, 0.0, -429450 / 80347, 0.0, 178290 / 80347)
_R2, _R3 = math.sqrt(2), math.sqrt(3)

KERNELS: dict[str, Kernel] = {
    "s3": Kernel(
        (
            Piece(1 / 2, (1 / 3,), (1 / 3, 0)),
            Piece(3 / 2, (5 / 6, -1 / 2), (-1 / 6, 0), shift=1),
        ),
        continuity=1,
        moments=2,
        squares=1 / 2,
        radicand=(1, 0, -3),
    ),
    "s4": Kernel(
        (
            Piece(1, (3 / 8, -1 / 4), (1 / 8, 0)),
            Piece(2, (5 / 8, -1 / 4), (-1 / 8, 0), shift=1),
        ),
        continuity=1,
        moments=2,
        balanced=True,
        squares=3 / 8,
        radicand=(1, 4, -4),
    ),
    "s5": Kernel(
        (
            Piece(1 / 2, (17 / 35, 0, -1 / 7), (1, 0)),
            Piece(3 / 2, (27 / 35, -1 / 42, -4 / 7, 1 / 6), (-2 / 3, 0), shift=1),
            Piece(5 / 2, (69 / 70, -125 / 84, 9 / 14, -1 / 12), (1 / 6, 0), shift=2),
        ),
        continuity=1,
        moments=4,
        squares=41 / 64,
        radicand=(3123 / 39200, 0, -311 / 980, 0, 101 / 490, 0, -1 / 28),
    ),
    "s6": Kernel(
        (
            Piece(1, (61 / 112, -11 / 42, -11 / 56, 1 / 12), (1, 0)),
            Piece(2, (117 / 224, 1 / 84, -23 / 112, 1 / 24), (-3 / 2, 0), shift=1),
            Piece(3, (209 / 224, -97 / 84, 45 / 112, -1 / 24), (1 / 2, 0), shift=2),
        ),
        continuity=1,
        moments=4,
        balanced=True,
        squares=67 / 128,
        radicand=(81 / 12544, 33 / 784, -187 / 9408, -65 / 1568, 125 / 9408, 1 / 112, -1 / 336),
    ),
    "t": Kernel(
        (Piece(2, (1 / 4,), cosine=(1 / 4, 0)),),
        continuity=1,
        moments=1,
        balanced=True,
        squares=3 / 8,
    ),
    "spl2": Kernel(
        (
            Piece(1 / 2, (1, 0, -7 / 4)),
            Piece(1, (7 / 4, -3, 5 / 4)),
            Piece(3 / 2, (5 / 4, -2, 3 / 4)),
            Piece(2, (-1, 1, -1 / 4)),
        ),
        continuity=1,
        moments=3,
        interpolating=True,
    ),
    "i2": Kernel((Piece(1, (1, -1)),), continuity=0, moments=2, interpolating=True),
    "i4": Kernel(
        (Piece(1, (1, -1 / 2, -1, 1 / 2)), Piece(2, (1, -11 / 6, 1, -1 / 6))),
        continuity=0,
        moments=4,
        interpolating=True,
    ),
    "i6": Kernel(
        (
            Piece(1, (1, -1 / 3, -5 / 4, 5 / 12, 1 / 4, -1 / 12)),
            Piece(2, (1, -13 / 12, -5 / 8, 25 / 24, -3 / 8, 1 / 24)),
            Piece(3, (1, -137 / 60, 15 / 8, -17 / 24, 1 / 8, -1 / 120)),
        ),
        continuity=0,
        moments=6,
        interpolating=True,
    ),
    "wl0": Kernel((Piece(1, _HAT[0]), Piece(2, _HAT[1])), continuity=2, moments=2),
    "wl2": Kernel(
        (Piece(1, _times(_HAT[0], _WL2)), Piece(2, _times(_HAT[1], _WL2))),
        continuity=2,
        moments=2,
    ),
    "wl4": Kernel(
        (Piece(1, _times(_HAT[0], _WL4)), Piece(2, _times(_HAT[1], _WL4))),
        continuity=2,
        moments=0,
    ),
    "smoothed-i2": Kernel(
        (Piece(1 / 2, (3 / 4, 0, -1)), Piece(3 / 2, (9 / 8, -3 / 2, 1 / 2))),
        continuity=1,
        moments=2,
    ),
    "smoothed-t": Kernel(
        (
            Piece(3 / 2, (1 / 4,), cosine=(_R2 / (2 * math.pi), 0)),
            Piece(5 / 2, (5 / 8, -1 / 4), cosine=(1 / (2 * math.pi), math.pi / 4)),
        ),
        continuity=2,
        moments=2,
        balanced=True,
    ),
    "smoothed-s3": Kernel(
        (
            Piece(
                1,
                (17 / 48 + _R3 * math.pi / 108, 1 / 4, -1 / 4),
                (1 / 16, -1 / 8),
                arcsine=-_R3 / 12,
            ),
            Piece(
                2,
                (55 / 48 - _R3 * math.pi / 108, -13 / 12, 1 / 4),
                (-1 / 16, 1 / 24),
                shift=1,
                arcsine=_R3 / 36,
            ),
        ),
        continuity=2,
        moments=2,
        radicand=(1, 12, -12),
        line=(-_R3 / 2, _R3),
    ),
    "smoothed-s4": Kernel(
        (
            Piece(1 / 2, (3 / 8 + math.pi / 32, 0, -1 / 4)),
            Piece(3 / 2, (1 / 4,), (1 / 8, -1 / 8), arcsine=-1 / 8),
            Piece(
                5 / 2,
                (17 / 16 - math.pi / 64, -3 / 4, 1 / 8),
                (-1 / 8, 1 / 16),
                shift=1,
                arcsine=1 / 16,
            ),
        ),
        continuity=2,
        moments=2,
        balanced=True,
        radicand=(-2, 8, -4),
        line=(-_R2, _R2),
    ),
}
