"""FFTW's planner, reached through the library that mpi4py-fft is linked with.

mpi4py-fft's own wrappers plan whole contiguous arrays only; the passes of a slab transform run over
strided parts of an array, so they are planned here by FFTW's guru interface. A plan can be executed
from Python and from compiled loops.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntFlag
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: One loop of a transform or of its repetition: (length, step in the input, step in the output),
#: steps in numbers of that array's type.
Loop = tuple[int, int, int]

FORWARD, BACKWARD = -1, 1


class Effort(IntFlag):
    """How a plan is found: by trying it out, or by rule (the same plan at every start)."""

    MEASURE = 0
    ESTIMATE = 1 << 6


#: For arrays that may start at any number; without it FFTW uses its vector instructions.
UNALIGNED = 1 << 1
#: What FFTW asks of the place where arrays start [bytes]; numpy's own arrays all comply.
ALIGNMENT = 16


class _Dimension(ctypes.Structure):
    _fields_ = [
        ("n", ctypes.c_ssize_t),
        ("step_in", ctypes.c_ssize_t),
        ("step_out", ctypes.c_ssize_t),
    ]


@cache
def library() -> ctypes.CDLL:
    """FFTW in double precision."""
    from mpi4py_fft.fftw import fftw_xfftn

    found = ctypes.CDLL(fftw_xfftn.__file__)
    for kind in KINDS:
        getattr(found, f"fftw_plan_guru64_{kind}").restype = ctypes.c_void_p
    found.fftw_export_wisdom_to_string.restype = ctypes.c_void_p
    return found


#: Kinds of transforms: real to complex, complex to real, complex to complex (with a direction).
KINDS = ("dft_r2c", "dft_c2r", "dft")


class Plan:
    """A planned one-dimensional transform, repeated over further loops; call it with arrays.

    Planning overwrites `source` and `target`. The arrays of a call start where the transform
    starts and have the steps of the plan; unless planned as unaligned, they start at a multiple of
    ALIGNMENT. c2r plans keep their input only if it says so in FFTW's manual: take it as destroyed.
    A plan is never given back: mpi4py-fft cleans FFTW up when it ends its own, after which others
    may not be touched, and a run makes a dozen of some kilobytes.
    """

    def __init__(
        self,
        kind: str,
        transform: Loop,
        repeat: Sequence[Loop],
        source: np.ndarray,
        target: np.ndarray,
        effort: Effort,
        direction: int = FORWARD,
        unaligned: bool = False,
    ) -> None:
        lib = library()
        sign = [ctypes.c_int(direction)] if kind == "dft" else []
        self._execute = getattr(lib, f"fftw_execute_{kind}")
        self._execute.argtypes = [ctypes.c_void_p] * 3
        self._plan = 0
        if 0 in (loop[0] for loop in repeat):
            return
        self._plan = getattr(lib, f"fftw_plan_guru64_{kind}")(
            1,
            _dimensions([transform]),
            len(repeat),
            _dimensions(repeat),
            ctypes.c_void_p(source.ctypes.data),
            ctypes.c_void_p(target.ctypes.data),
            *sign,
            ctypes.c_uint(effort | (UNALIGNED if unaligned else 0)),
        )
        if not self._plan:
            raise RuntimeError(f"FFTW has no plan for {kind} {transform} repeated {list(repeat)}")

    def __call__(self, source: np.ndarray, target: np.ndarray) -> None:
        """Transform from one array to another (or the same one, if planned so)."""
        if self._plan:
            self._execute(self._plan, source.ctypes.data, target.ctypes.data)

    @property
    def call(self) -> tuple[int, int]:
        """The first two arguments of `execute`."""
        return ctypes.cast(self._execute, ctypes.c_void_p).value or 0, self._plan


@intrinsic
def execute(typing: Any, function: Any, plan: Any, source: Any, target: Any) -> Any:
    """In compiled loops: execute a plan (`*plan.call`) from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(8 * ctypes.sizeof(ctypes.c_void_p))
        kind = ir.FunctionType(ir.VoidType(), [word] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), generate


def _dimensions(loops: Sequence[Loop]) -> ctypes.Array:
    return (_Dimension * len(loops))(*(_Dimension(*loop) for loop in loops))


def export_wisdom() -> str:
    """What FFTW has learned in this process about fast plans."""
    lib = library()
    address = lib.fftw_export_wisdom_to_string()
    text = ctypes.string_at(address).decode("ascii")
    ctypes.CDLL(None).free(ctypes.c_void_p(address))
    return text


def import_wisdom(text: str) -> bool:
    """Add what another process has learned; False if this FFTW cannot use it."""
    return bool(library().fftw_import_wisdom_from_string(text.encode("ascii", "replace")))


def forget_wisdom() -> None:
    """Forget what has been learned."""
    library().fftw_forget_wisdom()
