"""What formulas are made of: operations with their values and derivatives, and nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: How tightly operators bind; what stands alone needs no parentheses.
COMPARISON, SUM, PRODUCT, SIGN, POWER, ALONE = range(1, 7)


@dataclass(frozen=True)
class Operation:
    """A function or operator: all that parsing, evaluation and differentiation know of it.

    `value` takes three numbers whatever the arity; it runs in Python on constants and compiled on
    blocks. `slope` is the derivative, a formula of the arguments a, b, c and their derivatives.
    """

    arity: int
    value: Callable[[float, float, float], float]
    slope: str = "0"
    level: int = ALONE


OPERATIONS = {
    "+": Operation(2, lambda a, b, c: a + b, "da+db", SUM),
    "-": Operation(2, lambda a, b, c: a - b, "da-db", SUM),
    "*": Operation(2, lambda a, b, c: a * b, "da*b+a*db", PRODUCT),
    "/": Operation(2, lambda a, b, c: a / b, "(da-a/b*db)/b", PRODUCT),
    "^": Operation(2, lambda a, b, c: a**b, "b*a^(b-1)*da+a^b*log(a)*db", POWER),
    "negative": Operation(1, lambda a, b, c: -a, "-da", SIGN),
    "<": Operation(2, lambda a, b, c: 1.0 if a < b else 0.0, level=COMPARISON),
    "<=": Operation(2, lambda a, b, c: 1.0 if a <= b else 0.0, level=COMPARISON),
    ">": Operation(2, lambda a, b, c: 1.0 if a > b else 0.0, level=COMPARISON),
    ">=": Operation(2, lambda a, b, c: 1.0 if a >= b else 0.0, level=COMPARISON),
    "==": Operation(2, lambda a, b, c: 1.0 if a == b else 0.0, level=COMPARISON),
    "!=": Operation(2, lambda a, b, c: 1.0 if a != b else 0.0, level=COMPARISON),
    "if": Operation(3, lambda a, b, c: b if a != 0.0 else c, "if(a,db,dc)"),
    "sin": Operation(1, lambda a, b, c: math.sin(a), "cos(a)*da"),
    "cos": Operation(1, lambda a, b, c: math.cos(a), "-(sin(a)*da)"),
    "tan": Operation(1, lambda a, b, c: math.tan(a), "(1+tan(a)^2)*da"),
    "asin": Operation(1, lambda a, b, c: math.asin(a), "da/sqrt(1-a^2)"),
    "acos": Operation(1, lambda a, b, c: math.acos(a), "-(da/sqrt(1-a^2))"),
    "atan": Operation(1, lambda a, b, c: math.atan(a), "da/(1+a^2)"),
    "sinh": Operation(1, lambda a, b, c: math.sinh(a), "cosh(a)*da"),
    "cosh": Operation(1, lambda a, b, c: math.cosh(a), "sinh(a)*da"),
    "tanh": Operation(1, lambda a, b, c: math.tanh(a), "(1-tanh(a)^2)*da"),
    "exp": Operation(1, lambda a, b, c: math.exp(a), "exp(a)*da"),
    "log": Operation(1, lambda a, b, c: math.log(a), "da/a"),
    "sqrt": Operation(1, lambda a, b, c: math.sqrt(a), "da/(2*sqrt(a))"),
    "abs": Operation(1, lambda a, b, c: abs(a), "sign(a)*da"),
    "sign": Operation(1, lambda a, b, c: 1.0 if a > 0.0 else (-1.0 if a < 0.0 else a)),
    "floor": Operation(1, lambda a, b, c: np.floor(a)),
    "step": Operation(1, lambda a, b, c: 1.0 if a >= 0.0 else 0.0),
    "mod": Operation(2, lambda a, b, c: a % b, "da-floor(a/b)*db"),
    "min": Operation(2, lambda a, b, c: a if a < b or a != a else b, "if(a<b,da,db)"),
    "max": Operation(2, lambda a, b, c: a if a > b or a != a else b, "if(a>b,da,db)"),
    "atan2": Operation(2, lambda a, b, c: math.atan2(a, b), "(b*da-a*db)/(a^2+b^2)"),
}
CONSTANTS = {"pi": math.pi}
FUNCTIONS = [name for name, operation in OPERATIONS.items() if operation.level == ALONE]
INFIX = {k: o.level for k, o in OPERATIONS.items() if o.arity == 2 and o.level != ALONE}


@dataclass(frozen=True, slots=True)
class Node:
    """A number or a variable (then a leaf), or an operation on earlier nodes."""

    operation: str
    arguments: tuple[int, ...] = ()
    leaf: float | str = ""
