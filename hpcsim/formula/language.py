"""The language of formulas: parsed by a fixed grammar, differentiated exactly.

    numbers      1   1.5   .5   1e-3
    names        the variables, the parameters, pi
    powers       a^b or a**b, from the right and before a sign: 2^3^2 = 2^9, -2^2 = -4
    signs        -a   +a
    products     a*b   a/b
    sums         a+b   a-b
    comparisons  a<b   a<=b   a>b   a>=b   a==b   a!=b       1 or 0, not chained
    calls        sin(a), max(a,b), ..., if(condition,a,b)    the functions in `OPERATIONS`

A formula is a flat list of nodes, arguments before users, equal parts stored once: nothing recurses
over it, and derivatives share what they have in common. What is undefined is nan, as in numpy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NoReturn, cast

import numpy as np

from hpcsim.errors import nearest
from hpcsim.formula.operations import (
    ALONE,
    COMPARISON,
    CONSTANTS,
    FUNCTIONS,
    INFIX,
    OPERATIONS,
    POWER,
    SIGN,
    Node,
)
from hpcsim.formula.program import Program, run, translate

LONGEST = 2000  # characters of a text
DEEPEST = 64  # parentheses, calls, signs and powers inside each other
LARGEST = 20000  # nodes of a formula when written out


class FormulaError(ValueError):
    """A formula that cannot be used, told in one line."""


@dataclass(frozen=True, repr=False)
class Formula:
    """A checked formula of some variables, made by `Formula.parse`; the last node is its value."""

    variables: tuple[str, ...]
    nodes: tuple[Node, ...]

    @staticmethod
    def parse(
        text: str, variables: Sequence[str], parameters: Mapping[str, float] | None = None
    ) -> Formula:
        """The formula of a text (grammar: see the module); parameters become constants."""
        if not isinstance(text, str):
            raise FormulaError(f"a formula is a text, not {shown(text)}")
        given = []
        for name, value in sorted((parameters or {}).items()):
            try:
                given.append((name, float(value)))
            except (TypeError, ValueError, OverflowError):
                what = f"the parameter {shown(name)} is not a number: {shown(value)}"
                raise FormulaError(what) from None
        return parsed(text, tuple(variables), tuple(given))

    def __str__(self) -> str:
        """Text of the formula; it parses back to the same formula, if it is not too long."""
        pieces: list[str] = []
        stack: list[str | tuple[int, int]] = [(len(self.nodes) - 1, 0)]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                pieces.append(item)
                continue
            index, least = item
            node = self.nodes[index]
            level = OPERATIONS[node.operation].level if node.arguments else ALONE
            parts: list[str | tuple[int, int]] = []
            if isinstance(node.leaf, float):
                level = SIGN if math.copysign(1.0, node.leaf) < 0.0 else ALONE
                parts = ["pi" if node.leaf == math.pi else repr(node.leaf).removesuffix(".0")]
            elif node.operation == "variable":
                parts = [node.leaf]
            elif level == ALONE:
                inner = [part for i in node.arguments for part in (",", (i, 0))]
                parts = [node.operation, "(", *inner[1:], ")"]
            elif level == SIGN:
                parts = ["-", (node.arguments[0], SIGN)]
            else:
                left, right = node.arguments
                before = level + (level in (COMPARISON, POWER))
                after = SIGN if level == POWER else level + 1
                parts = [(left, before), node.operation, (right, after)]
            stack.extend(reversed(["(", *parts, ")"] if level < least else parts))
        return "".join(pieces)

    def __repr__(self) -> str:
        return f"Formula({str(self)!r}, variables={self.variables})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.variables, self.nodes)

    def depends_on(self, name: str) -> bool:
        """Whether a variable occurs in the formula, constants being folded."""
        return Node("variable", (), name) in self.nodes

    def derivative(self, name: str) -> Formula:
        """The exact derivative by a variable, without what is multiplied by zero."""
        if name not in self.variables:
            close = nearest(name, list(self.variables))
            allowed = ", ".join(self.variables)
            raise FormulaError(f"{shown(name)} is no variable{close} (variables: {allowed})")
        build = Builder()
        zero = build.number(0.0)
        same: list[int] = []
        slopes: list[int] = []
        for node in self.nodes:
            arguments = [same[i] for i in node.arguments]
            changes = [slopes[i] for i in node.arguments]
            same.append(build.place(Node(node.operation, tuple(arguments), node.leaf)))
            if all(change == zero for change in changes):
                slopes.append(build.number(1.0) if node.leaf == name else zero)
            else:
                known = dict(zip("abc", arguments, strict=False))
                known |= dict(zip(("da", "db", "dc"), changes, strict=False))
                slopes.append(build.follow(OPERATIONS[node.operation].slope, known))
        return build.finish(slopes[-1], self.variables)

    def __call__(self, *arguments: float | np.ndarray) -> Any:
        """The values at numbers or arrays, one for each variable; a float if all are numbers."""
        out = np.empty(np.broadcast_shapes(*(np.shape(argument) for argument in arguments)))
        self.evaluate(out, *arguments)
        return out if out.ndim else float(out)

    def evaluate(self, out: np.ndarray, *arguments: float | np.ndarray) -> None:
        """Fill `out` with the values; each argument is a number or broadcasts to its shape."""
        if len(arguments) != len(self.variables):
            names = ", ".join(self.variables)
            raise TypeError(f"the arguments are ({names}), but {len(arguments)} were given")
        if out.dtype != np.float64 or not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError("out must be a writable, C-contiguous array of float64")
        fields = [np.asarray(argument, np.float64) for argument in arguments]
        scalars = tuple(field.ndim == 0 for field in fields)
        if scalars not in self._programs:
            self._programs[scalars] = translate(self.nodes, self.variables, scalars)
        lines, once, registers, numbers = self._programs[scalars]
        numbers = numbers.copy()
        addresses = np.zeros(len(fields), np.int64)
        strides = np.zeros((len(fields), out.ndim), np.int64)
        for k, field in enumerate(fields):
            if scalars[k]:
                numbers[k] = field
                continue
            overlapping = field is not out and np.may_share_memory(field, out)
            if overlapping or not field.flags.aligned:
                fields[k] = field = field.copy()  # kept in the list until the kernel is done
            lengths = zip(field.shape[::-1], out.shape[::-1], strict=False)
            if field.ndim > out.ndim or any(n not in (1, whole) for n, whole in lengths):
                what = f"{self.variables[k]} of shape {field.shape} does not broadcast to "
                raise ValueError(f"{what}{out.shape}")
            addresses[k] = field.__array_interface__["data"][0]
            steps = zip(field.shape, field.strides, strict=True)
            strides[k, out.ndim - field.ndim :] = [0 if n == 1 else step // 8 for n, step in steps]
        shape = np.array(out.shape, np.int64)
        run(lines, once, registers, numbers, addresses, strides, shape, out.reshape(-1))

    @cached_property
    def _programs(self) -> dict[tuple[bool, ...], Program]:
        return {}


class Builder:
    """Nodes being put together; equal ones are stored once, constants are folded."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.places: dict[tuple[str, tuple[int, ...], str], int] = {}

    def place(self, node: Node) -> int:
        """Index of a node, new or already there."""
        key = (node.operation, node.arguments, repr(node.leaf))  # 0 and -0 are two numbers
        index = self.places.setdefault(key, len(self.nodes))
        if index == len(self.nodes):
            if index >= LARGEST:
                raise FormulaError(f"the formula grows beyond {LARGEST} nodes")
            self.nodes.append(node)
        return index

    def number(self, value: float) -> int:
        """Index of a number."""
        return self.place(Node("number", (), float(value)))

    def constant(self, index: int) -> float | None:
        """The value of a number; None for anything else."""
        leaf = self.nodes[index].leaf
        return leaf if isinstance(leaf, float) else None

    def apply(self, name: str, *arguments: int) -> int:
        """Index of an operation, or of its value if that is a finite constant."""
        values = [v for index in arguments if (v := self.constant(index)) is not None]
        if len(values) == len(arguments):
            try:
                value = float(OPERATIONS[name].value(*[*values, 0.0, 0.0][:3]))
                if math.isfinite(value):
                    return self.number(value)
            except (ArithmeticError, ValueError, TypeError):
                pass  # undefined, too large or complex: left to the kernel, which says nan or inf
        return self.place(Node(name, arguments))

    def simplified(self, name: str, *arguments: int) -> int:
        """As `apply`, but without the zeros and ones that differentiation leaves behind."""
        a, b = arguments[0], arguments[-1]
        u, v = self.constant(a), self.constant(b)
        inner = self.nodes[b]
        match name:
            case "+" if 0.0 in (u, v):
                return b if u == 0.0 else a
            case "-" if v == 0.0:
                return a
            case "-" if u == 0.0:
                return self.simplified("negative", b)
            case "*" if 0.0 in (u, v):
                return self.number(0.0)
            case "*" if 1.0 in (u, v):
                return b if u == 1.0 else a
            case "*" if u is None and v is not None:
                return self.simplified("*", b, a)
            case "*" if u == -1.0:
                return self.simplified("negative", b)
            case "*" if u is not None and inner.operation == "negative":
                return self.simplified("*", self.number(-u), inner.arguments[0])
            case "*" if u is not None and inner.operation == "*":
                product = self.apply("*", a, inner.arguments[0])
                if self.constant(product) is not None:
                    return self.simplified("*", product, inner.arguments[1])
            case "/" if u == 0.0 or v == 1.0:
                return a
            case "^" if v in (0.0, 1.0):
                return a if v == 1.0 else self.number(1.0)
            case "negative" if inner.operation == "negative":
                return inner.arguments[0]
            case "negative" if inner.operation == "*":
                if (factor := self.constant(inner.arguments[0])) is not None:
                    return self.simplified("*", self.number(-factor), inner.arguments[1])
            case "if" if arguments[1] == b:
                return b
        return self.apply(name, *arguments)

    def follow(self, rule: str, known: Mapping[str, int]) -> int:
        """Index of a rule of differentiation, applied to known nodes."""
        made: list[int] = []
        for node in parsed(rule, RULE_NAMES, ()).nodes:
            if isinstance(node.leaf, float):
                made.append(self.number(node.leaf))
            elif node.operation == "variable":
                made.append(known[node.leaf])
            else:
                made.append(self.simplified(node.operation, *(made[i] for i in node.arguments)))
        return made[-1]

    def finish(self, root: int, variables: tuple[str, ...]) -> Formula:
        """The formula of a node: what it needs, in the order in which it is read."""
        order: dict[int, int] = {}
        nodes: list[Node] = []
        written: list[int] = []
        stack = [root]
        while stack:
            node = self.nodes[stack[-1]]
            missing = [i for i in node.arguments if i not in order]
            if missing:
                stack.extend(reversed(missing))
            elif (index := stack.pop()) not in order:
                order[index] = len(nodes)
                arguments = tuple(order[i] for i in node.arguments)
                nodes.append(Node(node.operation, arguments, node.leaf))
                written.append(min(1 + sum(written[i] for i in arguments), LARGEST + 1))
        if written[-1] > LARGEST:
            raise FormulaError(f"the formula has more than {LARGEST} nodes when written out")
        return Formula(variables, tuple(nodes))


RULE_NAMES = ("a", "b", "c", "da", "db", "dc")
NAME = r"[A-Za-z_][A-Za-z_0-9]*"
TOKEN = re.compile(
    r"[ \t]*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    rf"|(?P<name>{NAME})|(?P<sign>\*\*|[<>=!]=|[-+*/^<>(),])|(?P<end>\Z)|(?P<bad>[\s\S]))"
)
HINTS = {"=": "; to compare write ==", "\n": "; a formula is one line"}


def shown(piece: object) -> str:
    """A piece of input for a message: quoted, on one line, not too long."""
    text = " ".join(repr(piece[:99] if isinstance(piece, str) else piece).split())
    return text if len(text) <= 40 else text[:37] + "..."


class Parser:
    """Reads one text by the strength of its operators (grammar: see the module)."""

    def __init__(
        self, text: str, variables: tuple[str, ...], parameters: Mapping[str, float]
    ) -> None:
        self.text = text
        self.variables = variables
        self.parameters = parameters
        self.build = Builder()
        self.depth = 0
        self.end = 0  # of the next token
        self.kind = self.piece = ""  # of the next token; the kind of a sign is the sign
        self.column = 1  # of the next token, counted from 1
        self.take()

    def fail(self, what: str, column: int | None = None) -> NoReturn:
        """Raise the error of the next token, or of a column."""
        raise FormulaError(f"column {column or self.column}: {what}")

    def take(self) -> tuple[str, str, int]:
        """Use up the next token: its kind, piece and column."""
        token = self.kind, self.piece, self.column
        match = cast("re.Match[str]", TOKEN.match(self.text, self.end))  # something always matches
        self.kind = str(match.lastgroup)
        self.piece = match[self.kind]
        self.column = match.start(self.kind) + 1
        self.end = match.end()
        if self.kind == "bad":
            self.fail(f"unexpected {shown(self.piece)}{HINTS.get(self.piece, '')}")
        if self.kind == "sign":
            self.kind = "^" if self.piece == "**" else self.piece
        return token

    def formula(self) -> Formula:
        """Parse all of the text."""
        if self.kind == "end":
            raise FormulaError("the formula is empty")
        root = self.expression(COMPARISON)
        if self.kind in ("number", "name", "("):
            self.fail(f"an operator such as * is missing before {shown(self.piece)}")
        if self.kind != "end":
            self.fail(f"unexpected {shown(self.piece)}")
        return self.build.finish(root, self.variables)

    def nested(self, level: int, column: int) -> int:
        """Parse an expression one storey deeper."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"nested deeper than {DEEPEST}", column)
        index = self.expression(level)
        self.depth -= 1
        return index

    def expression(self, level: int) -> int:
        """Parse operands joined by operators that bind at least as tightly as `level`."""
        left = self.operand()
        while (strength := INFIX.get(self.kind, 0)) >= level:
            name, _, column = self.take()
            power = strength == POWER
            right = self.nested(POWER, column) if power else self.expression(strength + 1)
            left = self.build.apply(name, left, right)
            if strength == COMPARISON and INFIX.get(self.kind) == COMPARISON:
                self.fail("comparisons cannot be chained; for a<b<c write (a<b)*(b<c)")
        return left

    def operand(self) -> int:
        """Parse a number, a name, a call, or something signed or in parentheses."""
        kind, piece, column = self.take()
        if kind == "number":
            if not math.isfinite(float(piece)):
                self.fail(f"the number {shown(piece)} is too large", column)
            return self.build.number(float(piece))
        if kind == "name":
            return self.call(piece, column) if piece in FUNCTIONS else self.name(piece, column)
        if kind == "(":
            index = self.nested(COMPARISON, column)
            self.close(column)
            return index
        if kind in ("-", "+"):
            index = self.nested(POWER, column)
            return self.build.apply("negative", index) if kind == "-" else index
        if kind == "end":
            self.fail("the formula ends where a value is expected", column)
        self.fail(f"a value is expected, not {shown(piece)}", column)

    def close(self, opened: int) -> None:
        """Take the parenthesis that closes the one at a column."""
        if self.kind == "end":
            self.fail("the parenthesis '(' is not closed", opened)
        if self.kind != ")":
            self.fail(f"an operator or ')' is expected, not {shown(self.piece)}")
        self.take()

    def name(self, name: str, column: int) -> int:
        """Parse a variable, a parameter or a constant."""
        known = {**CONSTANTS, **self.parameters}
        if name not in known and name not in self.variables:
            close = nearest(name[:40], [*self.variables, *known, *FUNCTIONS])
            kinds = ("variables", "parameters", "constants", "functions")
            lists = (self.variables, self.parameters, CONSTANTS, FUNCTIONS)
            allowed = [f"{k}: {', '.join(n)}" for k, n in zip(kinds, lists, strict=True) if n]
            self.fail(f"unknown name {shown(name)}{close} ({'; '.join(allowed)})", column)
        if self.kind == "(":
            self.fail(f"{shown(name)} is not a function; to multiply write *", column)
        if name in known:
            return self.build.number(known[name])
        return self.build.place(Node("variable", (), name))

    def call(self, name: str, column: int) -> int:
        """Parse the arguments of a function."""
        if self.kind != "(":
            self.fail(f"the function {name} needs its arguments in parentheses", column)
        opened = self.take()[2]
        arguments: list[int] = []
        while self.kind != ")" or arguments:
            arguments.append(self.nested(COMPARISON, opened))
            if self.kind != ",":
                break
            self.take()
        self.close(opened)
        arity = OPERATIONS[name].arity
        if len(arguments) != arity:
            needed = f"{arity} argument{'s' * (arity > 1)}"
            self.fail(f"{name} takes {needed}, not {len(arguments)}", column)
        return self.build.apply(name, *arguments)


@lru_cache(maxsize=512)
def parsed(
    text: str, variables: tuple[str, ...], parameters: tuple[tuple[str, float], ...]
) -> Formula:
    """The formula of a text: the same object for the same question."""
    if len(text) > LONGEST:
        raise FormulaError(f"the formula has {len(text)} characters; {LONGEST} are allowed")
    taken = {**dict.fromkeys(CONSTANTS, "constant"), **dict.fromkeys(FUNCTIONS, "function")}
    for kind, names in (("variable", variables), ("parameter", dict(parameters))):
        for name in names:
            if not re.fullmatch(NAME, name):
                raise FormulaError(f"{shown(name)} cannot be the name of a {kind}")
            if name in taken:
                raise FormulaError(f"the {kind} {shown(name)} hides the {taken[name]} of that name")
            taken[name] = kind
    for name, value in parameters:
        if not math.isfinite(value):
            raise FormulaError(f"the parameter {shown(name)} is not a finite number: {value}")
    return Parser(text, variables, dict(parameters)).formula()
