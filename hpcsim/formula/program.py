"""Formulas evaluated: nodes become a short program that one kernel runs over blocks of points.

Nothing is compiled per formula. All points run the same instructions, so their bits do not depend
on the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numba
import numpy as np
from numba.extending import intrinsic, register_jitable

from hpcsim.compiled import FASTMATH, kernel
from hpcsim.formula.operations import OPERATIONS, Node

LANES = 256  # points of a block
MULTIPLIED = {-1, *range(2, 17), *range(-16, -1)}  # powers that are products

NUMBER, FIELD = -1, -2  # codes of the lines that load; the others are places in OPERATIONS
CODES = {name: code for code, name in enumerate(OPERATIONS)}
Program = tuple[np.ndarray, int, int, np.ndarray]  #: lines, once, registers, numbers of `run`
scalar = numba.njit(fastmath=FASTMATH, error_model="numpy", inline="always")
part = register_jitable(fastmath=FASTMATH, forceinline=True)


def sweeps(first: int, values: list[Callable[..., float]]) -> Callable[..., None]:
    """Part of the kernel that fills a block by the operation of a code, found by halving."""
    half = 4 * ((len(values) + 7) // 8)
    middle = first + half
    if len(values) > 4:
        low, high = sweeps(first, values[:half]), sweeps(middle, values[half:])

        def sweep(code: int, work: np.ndarray, t: int, a: int, b: int, c: int) -> None:
            if code < middle:
                low(code, work, t, a, b, c)
            else:
                high(code, work, t, a, b, c)

    else:
        f, g, h, k = (scalar(value) for value in [*values, *values[-1:] * 3][:4])

        def sweep(code: int, work: np.ndarray, t: int, a: int, b: int, c: int) -> None:
            if code == first:
                for i in range(LANES):
                    work[t, i] = f(work[a, i], work[b, i], work[c, i])
            elif code == first + 1:
                for i in range(LANES):
                    work[t, i] = g(work[a, i], work[b, i], work[c, i])
            elif code == first + 2:
                for i in range(LANES):
                    work[t, i] = h(work[a, i], work[b, i], work[c, i])
            else:
                for i in range(LANES):
                    work[t, i] = k(work[a, i], work[b, i], work[c, i])

    made: Callable[..., None] = part(sweep)
    return made


operate = sweeps(0, [operation.value for operation in OPERATIONS.values()])


@cast(Any, intrinsic)
def load(typing: Any, address: Any, index: Any) -> Any:
    """The float64 at an address, so many places on: one kernel for arrays of any layout."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = context.get_value_type(signature.return_type).as_pointer()
        return builder.load(builder.gep(builder.inttoptr(values[0], pointer), [values[1]]))

    return numba.float64(numba.int64, numba.int64), generate


@part
def gather(
    block: np.ndarray,
    count: int,
    start: int,
    address: int,
    strides: np.ndarray,
    shape: np.ndarray,
    index: np.ndarray,
) -> None:
    """Fill a block with `count` points of a field from the flat index `start` on, row by row."""
    last = shape.size - 1
    place = 0
    for axis in range(last, -1, -1):
        index[axis] = start % shape[axis]
        start //= shape[axis]
        place += index[axis] * strides[axis]
    lane = 0
    while lane < count:
        row = min(count - lane, shape[last] - index[last])
        step = strides[last]
        if step == 1:
            for i in range(row):
                block[lane + i] = load(address, place + i)
        else:
            for i in range(row):
                block[lane + i] = load(address, place + i * step)
        lane += row
        place += row * step
        index[last] += row
        axis = last
        while axis > 0 and index[axis] == shape[axis]:
            place += strides[axis - 1] - shape[axis] * strides[axis]
            index[axis] = 0
            axis -= 1
            index[axis] += 1
    for i in range(count, LANES):
        block[i] = block[0]


@kernel
def run(
    lines: np.ndarray,
    once: int,
    registers: int,
    numbers: np.ndarray,
    addresses: np.ndarray,
    strides: np.ndarray,
    shape: np.ndarray,
    out: np.ndarray,
) -> None:
    """Run a program, lines of (code, target, operands), over blocks of points; the last gives out.

    The first `once` lines are the same at all points and run once.
    """
    work = np.empty((registers, LANES))
    index = np.empty(shape.size, np.int64)
    for start in range(0, out.size, LANES):
        count = min(LANES, out.size - start)
        for line in range(once if start else 0, len(lines)):
            code, t, a = lines[line, 0], lines[line, 1], lines[line, 2]
            if code == NUMBER:
                for i in range(LANES):
                    work[t, i] = numbers[a]
            elif code == FIELD:
                gather(work[t], count, start, addresses[a], strides[a], shape, index)
            else:
                operate(code, work, t, a, lines[line, 3], lines[line, 4])
        t = lines[len(lines) - 1, 1]
        for i in range(count):
            out[start + i] = work[t, i]


def translate(nodes: Sequence[Node], variables: Sequence[str], scalars: Sequence[bool]) -> Program:
    """The program of some nodes, the last of which is wanted, given which variables are scalars.

    Its numbers are the scalars, to be set by each call, and then the constants.
    """
    numbers = [0.0] * len(scalars)
    lines: dict[tuple[int, ...], int] = {}  # (code, operands) and its place, in order

    def emit(*line: int) -> int:
        return lines.setdefault(line, len(lines))

    def constant(value: float) -> int:
        numbers.append(value)
        return emit(NUMBER, len(numbers) - 1)

    def power(base: int, exponent: int) -> int:
        result = base
        for digit in f"{abs(exponent):b}"[1:]:
            result = emit(CODES["*"], result, result)
            result = emit(CODES["*"], result, base) if digit == "1" else result
        return result if exponent > 0 else emit(CODES["/"], constant(1.0), result)

    places: list[int] = []
    for node in nodes:
        operands = [places[i] for i in node.arguments]
        exponent = nodes[node.arguments[1]].leaf if node.operation == "^" else ""
        if isinstance(node.leaf, float):
            places.append(constant(node.leaf))
        elif node.operation == "variable":
            k = variables.index(node.leaf)
            places.append(emit(NUMBER if scalars[k] else FIELD, k))
        elif exponent in MULTIPLIED:
            places.append(power(operands[0], int(exponent)))
        else:
            places.append(emit(CODES[node.operation], *operands))

    listed = list(lines)
    inputs = [line[1:] if line[0] >= 0 else () for line in listed]
    uniform: list[bool] = []
    for line, used in zip(listed, inputs, strict=True):
        uniform.append(line[0] != FIELD and all(uniform[i] for i in used))
    order = sorted(range(len(listed)), key=lambda i: not uniform[i])
    last = {i: user for user in order for i in inputs[user]}
    register: dict[int, int] = {}
    free: list[int] = []
    registers = 0
    program = np.zeros((len(order), 5), np.int64)
    for row, i in enumerate(order):  # the target is never an operand: the loops vectorise
        if not free:
            free.append(registers)
            registers += 1
        register[i] = free.pop()
        operands = [register[k] for k in inputs[i]] or list(listed[i][1:])
        program[row, : 2 + len(operands)] = [listed[i][0], register[i], *operands]
        free += {register[k] for k in inputs[i] if last[k] == i and not uniform[k]}
    return program, sum(uniform), registers, np.array(numbers)
