"""Reading a run folder: finished, stopped, killed or still going."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hpcsim.errors import InputError
from hpcsim.output.segments import CONSTANTS, datasets, sealed_frames


class LazyArray:
    """An array of a run that is read when it is indexed; frames may lie in several files."""

    def __init__(
        self,
        name: str,
        parts: list[tuple[Path, int]],
        shape: tuple[int, ...],
        dtype: np.dtype,
        attributes: dict[str, Any],
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.attributes = attributes
        self._parts = parts

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.name} {self.shape} {self.dtype} [{self.attributes.get('units', '')}]>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[()], dtype=dtype)

    def __getitem__(self, index: Any) -> np.ndarray:
        """NumPy indexing; only the frames asked for are read."""
        index = index if isinstance(index, tuple) else (index,)
        if index and index[0] is Ellipsis:
            index = (slice(None),) * (self.ndim - len(index) + 1) + index[1:]
        if self.ndim == 0 or not self._framed:
            return self._read(self._parts[0][0], ())[index]
        first = index[0] if index else slice(None)
        rest = index[1:]
        if isinstance(first, int | np.integer):
            frame = range(len(self))[first]
            return self._frames(np.array([frame]), rest)[0]
        if isinstance(first, slice):
            frames = np.arange(len(self))[first]
        else:
            frames = np.arange(len(self))[np.asarray(first)]
        return self._frames(frames, rest)

    @property
    def _framed(self) -> bool:
        return self.attributes["dims"][:1] == ["frame"]

    def _frames(self, frames: np.ndarray, rest: tuple[Any, ...]) -> np.ndarray:
        start, blocks = 0, []
        order = np.argsort(frames, kind="stable")
        wanted = frames[order]
        for path, count in self._parts:
            inside = wanted[(wanted >= start) & (wanted < start + count)] - start
            if inside.size:
                low, high = int(inside[0]), int(inside[-1]) + 1
                blocks.append(self._read(path, (slice(low, high), *rest))[inside - low])
            start += count
        if not blocks:
            return np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *rest)]
        merged = np.concatenate(blocks)
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return merged[back]

    def _read(self, path: Path, index: tuple[Any, ...]) -> np.ndarray:
        with h5py.File(path, "r") as file:
            return file[self.name][index]


class Group(Mapping[str, LazyArray]):
    """The arrays of one group, by the rest of their path: `run.series["drift_energy"]`."""

    def __init__(self, name: str, arrays: dict[str, LazyArray]) -> None:
        self.name = name
        self._arrays = arrays

    def __getitem__(self, name: str) -> LazyArray:
        if name not in self._arrays:
            raise KeyError(f"{self.name} has no {name!r}; it has {', '.join(sorted(self._arrays))}")
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class Run:
    """A run folder: `.case`, `.summary`, `.series[NAME]`, `run["ensemble/state"]`, `run.ensemble`.

    Arrays are lazy: indexing reads what is asked for. What a running simulation has sealed so far
    is seen; open the run again to see more.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        try:
            self.case: dict[str, Any] = tomllib.loads((self.folder / "case.toml").read_text())
            self.summary: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        except (OSError, ValueError):
            raise InputError(
                f"{self.folder}: not a run folder (no readable case.toml and summary.json)"
            ) from None
        self.arrays = self._open()

    def _open(self) -> dict[str, LazyArray]:
        for attempt in range(3):
            try:
                return self._scan()
            except OSError as problem:  # the run has just gathered its segments: look again
                if attempt == 2:
                    raise InputError(
                        f"{self.folder}: its results cannot be read: {problem}"
                    ) from None
        raise AssertionError

    def _scan(self) -> dict[str, LazyArray]:
        arrays: dict[str, LazyArray] = {}
        files = sealed_frames(self.folder)
        total = sum(sealed.count for sealed in files)
        parts = [(sealed.path, sealed.count) for sealed in files]
        constants = [self.folder / "segments" / CONSTANTS, self.folder / "output.h5"]
        newest = [sealed.path for sealed in files[-1:]]
        for path in [*newest, *(path for path in constants if path.exists())]:
            with h5py.File(path, "r") as file:
                for name, dataset in datasets(file):
                    attributes = {key: plain(value) for key, value in dataset.attrs.items()}
                    framed = attributes["dims"][:1] == ["frame"]
                    if name not in arrays and (not framed or path in newest):
                        shape = (total, *dataset.shape[1:]) if framed else dataset.shape
                        where = parts if framed else [(path, 0)]
                        arrays[name] = LazyArray(name, where, shape, dataset.dtype, attributes)
        return arrays

    def __getitem__(self, path: str) -> LazyArray:
        path = path.strip("/")
        if path not in self.arrays:
            raise KeyError(
                f"{self.folder} has no {path!r}; it has {', '.join(sorted(self.arrays))}"
            )
        return self.arrays[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __contains__(self, path: str) -> bool:
        return path.strip("/") in self.arrays

    def __getattr__(self, group: str) -> Group:
        inside = {
            name.partition("/")[2]: array
            for name, array in self.__dict__.get("arrays", {}).items()
            if name.partition("/")[0] == group
        }
        if not inside and group != "series":
            raise AttributeError(f"a run has no {group!r}")
        return Group(group, inside)

    def __repr__(self) -> str:
        return f"<run {self.folder}: {self.summary['model']}, {self.summary['status']}>"


def plain(value: Any) -> Any:
    """An HDF5 attribute as Python values."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value
