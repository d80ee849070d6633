"""`hpcsim export`: XDMF files that let ParaView read `output.h5` as it is.

The last axis of a field is z, but XDMF takes the last axis for x. So every point is given its
coordinates: a curvilinear grid, written once in single precision beside the results. Vectors are
stored component first; the file tells the reader which slabs of the array to join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import h5py
import numpy as np

from hpcsim.errors import InputError
from hpcsim.output.hdf5 import add_dataset, rename_synced, storage, write_text
from hpcsim.output.run import LazyArray, Run
from hpcsim.output.segments import sealed_frames

OUTPUT = "output.h5"
POINTS = "export-points.h5"
FIELDS = ("u", "p", "vorticity")
NOTE = (
    " Open with ParaView's 'XDMF Reader'. The Xdmf3 readers put the components of a vector behind "
    "each other instead of side by side. "
)


def export(folder: Path) -> list[Path]:
    """Write `GROUP.xdmf` into a run folder for every group that has something to show."""
    run = Run(folder)
    check_gathered(run)
    aside = folder / f"{POINTS}.part"
    with storage(folder / POINTS):
        try:
            with h5py.File(aside, "w", libver="v110") as points:
                made = {group: list(grids(run, points)) for group, grids in GROUPS.items()}
            if not any(made.values()):
                raise InputError(
                    f"{folder}: holds nothing to export; a run of a fluid does with some of "
                    f"{', '.join(FIELDS)} in output.fields"
                )
            rename_synced(aside, folder / POINTS)
        finally:
            aside.unlink(missing_ok=True)
    files = []
    for group, frames in made.items():
        if frames:
            files.append(folder / f"{group}.xdmf")
            write_text(files[-1], document(group, frames))
    return files


def check_gathered(run: Run) -> None:
    """Refuse a run with frames that are not in `output.h5`, or with none at all."""
    files = [sealed.path for sealed in sealed_frames(run.folder)]
    if any(path != run.folder / OUTPUT for path in files):
        raise InputError(
            f"{run.folder}: has frames that are not yet gathered into {OUTPUT}; "
            "let the run finish, or go on with it by --restart, then export"
        )
    if not files:
        raise InputError(f"{run.folder}: holds no frames yet, so there is nothing to export")


def document(group: str, frames: list[Element]) -> str:
    """The XDMF text of a group: its frames as a series in time."""
    root = Element("Xdmf", Version="2.0")
    root.append(ElementTree.Comment(NOTE))
    domain = SubElement(root, "Domain")
    series = SubElement(
        domain, "Grid", Name=group, GridType="Collection", CollectionType="Temporal"
    )
    series.extend(frames)
    ElementTree.indent(root)
    return '<?xml version="1.0" ?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


# ---- groups ----


def fluid_grids(run: Run, points: h5py.File) -> Iterator[Element]:
    """Fields on a grid: `fluid/u`, `fluid/p`, `fluid/vorticity`, as many as there are."""
    fields = {name: run[f"fluid/{name}"] for name in FIELDS if f"fluid/{name}" in run}
    if not fields:
        return
    axes = [run[f"fluid/{axis}"] for axis in "xyz" if f"fluid/{axis}" in run]
    where = write_grid_points(points, "fluid/points", axes)
    # Two dimensions are one layer: on a 2DSMesh VTK 9.7 reads vectors wrongly, and it takes
    # derivatives wrongly where another axis than the first here has length 1.
    shape = (*(1 for _ in range(3 - len(axes))), *where.shape[:-1])
    for frame, time in enumerate(run["fluid/t"][:]):
        grid = Element("Grid", Name=f"fluid {frame}", GridType="Uniform")
        SubElement(grid, "Time", Value=repr(float(time)))
        SubElement(grid, "Topology", TopologyType="3DSMesh", Dimensions=words(shape))
        geometry = SubElement(grid, "Geometry", GeometryType="XYZ")
        add_array(geometry, POINTS, where.name, where.shape, where.dtype)
        for name, field in fields.items():
            add_field(grid, name, field, frame, shape, len(axes))
        yield grid


def write_grid_points(file: h5py.File, name: str, axes: list[LazyArray]) -> h5py.Dataset:
    """(x, y, z) of every point in single precision; z = 0 where there is no third axis."""
    x, *others = (axis[:] for axis in axes)
    shape = (x.size, *(other.size for other in others), 3)
    dims = [*"xyz"[: len(axes)], "component"]
    attributes = {"units": axes[0].attributes["units"], "dims": dims}
    dataset = add_dataset(file, name, shape, np.dtype(np.float32), attributes)
    plane = np.zeros(shape[1:], np.float32)
    for component, values in enumerate(np.meshgrid(*others, indexing="ij"), start=1):
        plane[..., component] = values
    for index, value in enumerate(x):
        plane[..., 0] = value
        dataset[index] = plane
    return dataset


#: group → the grids of its frames; what they need beside `output.h5` they write to the file given
GROUPS: dict[str, Callable[[Run, h5py.File], Iterator[Element]]] = {
    "fluid": fluid_grids,
}


# ---- XDMF elements ----


def add_field(
    grid: Element, name: str, field: LazyArray, frame: int, shape: tuple[int, ...], dimensions: int
) -> None:
    """A frame of a scalar (frame, x, y[, z]) or of a vector (frame, component, x, y[, z])."""
    kind = "Vector" if field.ndim == 2 + dimensions else "Scalar"
    attribute = SubElement(grid, "Attribute", Name=name, AttributeType=kind, Center="Node")
    if kind == "Scalar":
        add_slab(attribute, field, (frame,), shape)
        return
    components = field.shape[1]
    parts = [f"${component}" for component in range(components)]
    parts += ["0.0 * $0"] * (3 - components)  # readers want three
    join = SubElement(
        attribute,
        "DataItem",
        number(field.dtype),
        ItemType="Function",
        Function=f"JOIN({', '.join(parts)})",
        Dimensions=words((*shape, 3)),
    )
    for component in range(components):
        add_slab(join, field, (frame, component), shape)


def add_slab(parent: Element, field: LazyArray, index: tuple[int, ...], shape: tuple) -> None:
    """The part of a dataset below leading indices, read in the given shape."""
    rest = field.shape[len(index) :]
    start = (*index, *(0 for _ in rest))
    count = (*(1 for _ in index), *rest)
    slab = SubElement(parent, "DataItem", ItemType="HyperSlab", Dimensions=words(shape))
    select = SubElement(slab, "DataItem", Format="XML", Dimensions=f"3 {field.ndim}")
    select.text = "  ".join(words(row) for row in (start, (1,) * field.ndim, count))
    add_array(slab, OUTPUT, f"/{field.name}", field.shape, field.dtype)


def add_array(parent: Element, file: str, name: str, shape: tuple, dtype: np.dtype) -> None:
    """A whole dataset of a file in the same folder."""
    item = SubElement(parent, "DataItem", number(dtype), Format="HDF", Dimensions=words(shape))
    item.text = f"{file}:{name}"


def number(dtype: np.dtype) -> dict[str, str]:
    """The attributes that tell a type of floating-point numbers."""
    return {"NumberType": "Float", "Precision": str(dtype.itemsize)}


def words(numbers: tuple[int, ...]) -> str:
    """Numbers with spaces between."""
    return " ".join(str(number) for number in numbers)
