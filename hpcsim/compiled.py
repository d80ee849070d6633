"""How hot loops are compiled: one decorator, and one cache that is never stale.

The cache lives in the user's cache folder (the installation may be read-only or shared) under a
name made from all of hpcsim's sources, for numba itself notices changes in one file only. Ranks
share it: one compiles, the others load.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.extending import register_jitable

#: a*b + c may become one fused instruction; nothing else of IEEE arithmetic is given up.
FASTMATH = {"contract"}


def cache_folder() -> Path:
    """Folder of compiled code for exactly these sources, where this user may write."""
    package = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(package.rglob("*.py")):
        facts = source.stat()
        digest.update(f"{source.relative_to(package)} {facts.st_size} {facts.st_mtime_ns}".encode())
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for base in (Path(user) / "hpcsim", Path(tempfile.gettempdir()) / f"hpcsim-{os.getuid()}"):
        folder = base / "compiled" / digest.hexdigest()[:16]
        try:
            if not folder.exists():
                folder.mkdir(parents=True, exist_ok=True)
                forget_old_caches(folder.parent)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="hpcsim-compiled-"))


def forget_old_caches(parent: Path, keep: int = 8) -> None:
    """Remove the compiled code of earlier sources, but for the newest few."""
    folders = sorted(parent.iterdir(), key=os.path.getmtime, reverse=True)
    for folder in folders[keep:]:
        shutil.rmtree(folder, ignore_errors=True)


CACHE = cache_folder()
setattr(numba.config, "CACHE_DIR", str(CACHE))  # noqa: B010  (not declared in its types)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a hot loop to machine code, cached on disk; it allocates nothing that lasts."""
    return numba.njit(cache=True, fastmath=FASTMATH, error_model="numpy")(function)


def reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop that sums: terms may be added in another order, the same at every call."""
    return numba.njit(cache=True, fastmath=FASTMATH | {"reassoc", "nsz"}, error_model="numpy")(
        function
    )


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as a building block that kernels compile into themselves.

    Unlike a kernel it can be handed to a function that makes kernels and the result is still
    cached on disk, because its pickle is its name.
    """
    return register_jitable(fastmath=FASTMATH)(function)
