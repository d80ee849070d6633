"""The compiled engine of ensembles: explicit Runge-Kutta over padded blocks of members.

State is (block, dof, lane), 64 members side by side, so that loops over a block have a constant
length, vectorise without a remainder, and stay in the first-level cache through many steps.
Every member runs the same instructions whatever its lane: its bits do not depend on the ranks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hpcsim.compiled import kernel

LANES = 64


def block_count(members: int) -> int:
    """Number of blocks that hold so many members."""
    return -(-members // LANES)


def pack(rows: np.ndarray) -> np.ndarray:
    """(member, column) → (block, column, lane); the last member fills up the last block."""
    blocks = block_count(len(rows))
    member = np.minimum(np.arange(blocks * LANES), len(rows) - 1)
    padded = rows[member].reshape(blocks, LANES, rows.shape[1])
    return np.ascontiguousarray(padded.swapaxes(1, 2))


@kernel
def unpack(blocks: np.ndarray, rows: np.ndarray) -> None:
    """(block, column, lane) → (member, column), without the padding."""
    members, columns = rows.shape
    for member in range(members):
        block, lane = divmod(member, LANES)
        for column in range(columns):
            rows[member, column] = blocks[block, column, lane]


@kernel
def first_bad(blocks: np.ndarray) -> int:
    """Index of the first member whose state is not finite; −1 if there is none."""
    for block in range(blocks.shape[0]):
        total = 0.0
        for column in range(blocks.shape[1]):
            for lane in range(LANES):
                total += 0.0 * blocks[block, column, lane]
        if total != 0.0:  # NaN: some value of the block is not finite
            for lane in range(LANES):
                for column in range(blocks.shape[1]):
                    if not np.isfinite(blocks[block, column, lane]):
                        return block * LANES + lane
    return -1


def make_start(start: Callable[..., None]) -> Callable[..., None]:
    """Kernel that fills the state from `start(given, y)`, both (row, lane) of a block."""

    @kernel
    def fill(given: np.ndarray, state: np.ndarray) -> None:
        for block in range(state.shape[0]):
            start(given[block], state[block])

    return fill


def make_observe(observe: Callable[..., None]) -> Callable[..., None]:
    """Kernel that evaluates invariants and their scales by `observe(y, p, values, scales)`."""

    @kernel
    def evaluate(
        state: np.ndarray, coefficients: np.ndarray, values: np.ndarray, scales: np.ndarray
    ) -> None:
        for block in range(state.shape[0]):
            observe(state[block], coefficients[block], values[block], scales[block])

    return evaluate


def make_advance(rate: Callable[..., None]) -> Callable[..., None]:
    """Kernel that does `steps` steps of y' = f(t, y; p), `rate(t, y, p, dy)` on a block.

    The tableau (a, b, c) is data; zero coefficients cost nothing.
    """

    @kernel
    def advance(
        state: np.ndarray,
        coefficients: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        first: int,
        dt: float,
        steps: int,
    ) -> None:
        stages = b.size
        dofs = state.shape[1]
        slopes = np.empty((stages, dofs, LANES))
        inner = np.empty((dofs, LANES))
        for block in range(state.shape[0]):
            y = state[block]
            p = coefficients[block]
            for step in range(first, first + steps):
                t = step * dt
                rate(t, y, p, slopes[0])
                for i in range(1, stages):
                    for d in range(dofs):
                        begun = False
                        for j in range(i):
                            weight = dt * a[i, j]
                            if weight != 0.0 and begun:
                                for lane in range(LANES):
                                    inner[d, lane] += weight * slopes[j, d, lane]
                            elif weight != 0.0:
                                begun = True
                                for lane in range(LANES):
                                    inner[d, lane] = y[d, lane] + weight * slopes[j, d, lane]
                        if not begun:
                            inner[d] = y[d]
                    rate(t + c[i] * dt, inner, p, slopes[i])
                for d in range(dofs):
                    for j in range(stages):
                        weight = dt * b[j]
                        if weight != 0.0:
                            for lane in range(LANES):
                                y[d, lane] += weight * slopes[j, d, lane]

    return advance
