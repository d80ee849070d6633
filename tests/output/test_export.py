"""Exported runs, read back by VTK's own XDMF reader, the one that ParaView has."""

import json
import xml.etree.ElementTree as ElementTree

import h5py
import numpy as np
import pytest

from hpcsim.errors import InputError, StorageError
from hpcsim.models.interface import Quantity
from hpcsim.output import export
from hpcsim.output.segments import Recorder, gather
from hpcsim.parallel.ranks import Ranks
from hpcsim.parallel.share import Share
from tests.launch import hpcsim, messages

AXES_3D = (np.linspace(0.0, 1.0, 5), np.linspace(-1.0, 2.0, 4), np.linspace(3.0, 3.5, 3))
AXES_2D = (np.linspace(0.0, 1.5, 6), np.linspace(-2.0, -1.0, 4))
ALL = ("u", "p", "vorticity")
#: components: None is a scalar
KINDS = {2: {"u": 2, "p": None, "vorticity": None}, 3: {"u": 3, "p": None, "vorticity": 3}}
TIMES = (0.0, 0.1, 0.30000000000000004)


def value(name, component, points, frame):
    """A number that differs at every point, for every component, field and frame."""
    x, y, z = points
    shape = np.sin(x + 0.1) * np.exp(0.3 * y) + x * y**2 - 0.7 * z * y + z**3 / 7 + x
    return shape * (1 + 0.5 * component) + 10 * component + 100 * frame + 1000 * ALL.index(name)


def field(name, axes, frame, dtype):
    """A field as the fluid records it: ([component,] x, y[, z])."""
    points = [*np.meshgrid(*axes, indexing="ij"), np.zeros([axis.size for axis in axes])][:3]
    count = KINDS[len(axes)][name]
    if count is None:
        return value(name, 0, points, frame).astype(dtype)
    return np.stack([value(name, c, points, frame) for c in range(count)]).astype(dtype)


def quantities(dimensions):
    names = ("x", "y", "z")[:dimensions]
    found = {f"fluid/{name}": Quantity((name,), "m") for name in names}
    for name, count in KINDS[dimensions].items():
        found[f"fluid/{name}"] = Quantity((("component",) if count else ()) + names, "SI")
    return found | {"series/kinetic_energy": Quantity((), "J")}


def record(run, ranks, axes, fields=ALL, dtype=np.float64, frames=range(3)):
    """Segments of a run: every rank has some planes x, as the fluid does."""
    if ranks.is_root:
        (run / "segments").mkdir(parents=True)
        (run / "case.toml").write_text("[case]\nname = 'test'\n")
        (run / "summary.json").write_text(json.dumps({"model": "test", "status": "running"}))
    ranks.barrier()
    recorder = Recorder(run / "segments", quantities(len(axes)), ranks, frames.start)
    recorder.write_constants(
        {f"fluid/{name}": Share(axis) for name, axis in zip("xyz", axes, strict=False)}
    )
    total = axes[0].size
    start, count = ranks.block(total)
    planes = slice(start, start + count)
    for frame in frames:
        shares = {"series/kinetic_energy": Share(np.array(1.0))}
        for name in fields:
            whole = field(name, axes, frame, dtype)
            axis = whole.ndim - len(axes)
            local = whole[:, planes] if axis else whole[planes]
            shares[f"fluid/{name}"] = Share(local, axis, start, total)
        recorder.record(TIMES[frame], shares)
        recorder.seal(frame)


def open_file(file):
    """VTK's reader of a file, and the times it has."""
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
    from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

    reader = vtkXdmfReader()
    reader.SetFileName(str(file))
    reader.UpdateInformation()
    key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    return reader, reader.GetOutputInformation(0).Get(key)


def arrays_of(grid):
    """Points and arrays of a grid."""
    from vtkmodules.util.numpy_support import vtk_to_numpy

    assert grid.GetClassName() == "vtkStructuredGrid"
    data = grid.GetPointData()
    arrays = {
        data.GetArrayName(index): vtk_to_numpy(data.GetArray(index)).copy()
        for index in range(data.GetNumberOfArrays())
    }
    return vtk_to_numpy(grid.GetPoints().GetData()).astype(float), arrays


def read(file):
    """Time, points and arrays of every frame, as VTK reads them."""
    reader, times = open_file(file)
    for time in times:
        reader.UpdateTimeStep(time)
        yield time, *arrays_of(reader.GetOutputDataObject(0))


def check(file, axes, fields=ALL, dtype=np.float64, frames=range(3)):
    """Every point is there once, and has the values that belong to its coordinates."""
    found = list(read(file))
    assert [time for time, _, _ in found] == [TIMES[frame] for frame in frames]
    for frame, (_, points, arrays) in zip(frames, found, strict=True):
        near = [
            np.abs(points[:, d, None] - axis).argmin(axis=1)
            for d, axis in enumerate([*axes, np.zeros(1)][:3])
        ]
        exact = [axis[index] for axis, index in zip([*axes, np.zeros(1)], near, strict=False)]
        np.testing.assert_allclose(points, np.stack(exact, axis=1), rtol=1e-7, atol=1e-7)
        assert len(set(zip(*near, strict=True))) == len(points) == np.prod([a.size for a in axes])
        assert set(arrays) == set(fields)
        for name, array in arrays.items():
            count = KINDS[len(axes)][name]
            assert array.dtype == dtype
            expected = [value(name, c, exact, frame).astype(dtype) for c in range(count or 1)]
            expected += [np.zeros(len(points))] * (3 - count if count else 0)
            # the same function, but perhaps by other instructions: equal to the last bits
            precise = 100 * np.finfo(dtype).eps
            np.testing.assert_allclose(
                array, np.stack(expected, 1) if count else expected[0], rtol=precise, atol=precise
            )


@pytest.mark.mpi
@pytest.mark.parametrize("axes", [AXES_3D, AXES_2D], ids=["3D", "2D"])
def test_every_value_sits_at_its_point(axes, ranks, shared_tmp):
    """Written by all ranks, gathered by all ranks, read by VTK."""
    run = shared_tmp / "run"
    record(run, ranks, axes)
    gather(run, {}, ranks)
    files = ranks.on_root(lambda: export.export(run))
    assert files == [run / "fluid.xdmf"]
    if ranks.is_root:
        check(files[0], axes)
    ranks.barrier()


def gathered(run, *args, **kwargs):
    ranks = Ranks.world()
    record(run, ranks, *args, **kwargs)
    gather(run, {}, ranks)
    return run


@pytest.mark.parametrize("axes", [AXES_3D, AXES_2D], ids=["3D", "2D"])
@pytest.mark.parametrize("fields", [ALL, ("u",), ("p",), ("vorticity", "p")], ids="-".join)
def test_any_fields_in_single_precision(axes, fields, tmp_path):
    run = gathered(tmp_path / "run", axes, fields, np.float32)
    check(export.export(run)[0], axes, fields, np.float32)


@pytest.mark.parametrize("axes", [AXES_3D, AXES_2D], ids=["3D", "2D"])
def test_every_second_point(axes, tmp_path):
    """What is recorded may be every n-th point: only the recorded coordinates count."""
    axes = tuple(axis[::2] for axis in axes)
    check(export.export(gathered(tmp_path / "run", axes))[0], axes)


@pytest.mark.parametrize("axes", [AXES_3D, AXES_2D], ids=["3D", "2D"])
def test_derivatives_are_those_in_space(axes, tmp_path, monkeypatch):
    """VTK's own gradient and curl of linear fields, on a grid whose axes it has turned."""
    from vtkmodules.vtkFiltersGeneral import vtkGradientFilter

    slopes = np.array([[2.0, 3.0, 5.0], [7.0, -1.0, 4.0], [0.5, 6.0, -2.0]])
    slopes[len(axes) :] = slopes[:, len(axes) :] = 0.0
    monkeypatch.setitem(
        globals(), "value", lambda name, c, points, frame: np.tensordot(slopes[c], points, 1)
    )
    reader, _ = open_file(export.export(gathered(tmp_path / "run", axes))[0])
    derive = vtkGradientFilter()
    derive.SetInputConnection(reader.GetOutputPort())
    derive.ComputeVorticityOn()
    derive.SetResultArrayName("slopes")
    derive.SetVorticityArrayName("curl")
    derive.SetInputArrayToProcess(0, 0, 0, 0, "u")
    derive.Update()
    points, arrays = arrays_of(derive.GetOutput())
    found = arrays["slopes"].reshape(-1, 3, 3)
    np.testing.assert_allclose(found, np.broadcast_to(slopes, found.shape), atol=1e-4)
    curl = [slopes[(d + 2) % 3, (d + 1) % 3] - slopes[(d + 1) % 3, (d + 2) % 3] for d in range(3)]
    np.testing.assert_allclose(arrays["curl"], np.tile(curl, (len(points), 1)), atol=1e-4)


def test_one_frame(tmp_path):
    run = gathered(tmp_path / "run", AXES_3D, frames=range(1))
    check(export.export(run)[0], AXES_3D, frames=range(1))


def test_the_folder_can_be_moved_and_the_data_are_not_copied(tmp_path):
    run = gathered(tmp_path / "run", AXES_3D)
    before = (run / "output.h5").read_bytes()
    export.export(run)
    assert (run / "output.h5").read_bytes() == before
    with h5py.File(run / "export-points.h5") as file:
        assert list(file) == ["fluid"]
        assert list(file["fluid"]) == ["points"]
        assert file["fluid/points"].dtype == np.float32
    assert str(tmp_path) not in (run / "fluid.xdmf").read_text()
    run.rename(tmp_path / "elsewhere")
    check(tmp_path / "elsewhere" / "fluid.xdmf", AXES_3D)


def test_a_run_that_goes_on_after_the_export(tmp_path):
    """The old file shows the old frames of the longer output, a new export shows all."""
    run = gathered(tmp_path / "run", AXES_3D, frames=range(2))
    old = export.export(run)[0]
    record(run, Ranks.world(), AXES_3D, frames=range(2, 3))
    with pytest.raises(InputError, match="not yet gathered"):
        export.export(run)
    gather(run, {}, Ranks.world())
    check(old, AXES_3D, frames=range(2))
    check(export.export(run)[0], AXES_3D)


def test_nothing_half_written_is_left_behind(tmp_path, monkeypatch):
    run = gathered(tmp_path / "run", AXES_3D)
    before = sorted(run.iterdir())
    monkeypatch.setattr(export, "write_grid_points", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export.export(run)
    assert sorted(run.iterdir()) == before

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_grid_points", full)
    with pytest.raises(StorageError, match=r"export-points.h5: cannot be written"):
        export.export(run)
    assert sorted(run.iterdir()) == before


def test_another_group_is_one_function_and_one_line(tmp_path, monkeypatch):
    """Groups with nothing to show make no file."""

    def markers(run, points):
        yield ElementTree.Element("Grid", Name="markers")

    monkeypatch.setattr(export, "GROUPS", export.GROUPS | {"markers": markers, "none": nothing})
    run = gathered(tmp_path / "run", AXES_2D)
    assert export.export(run) == [run / "fluid.xdmf", run / "markers.xdmf"]


def nothing(run, points):
    return iter(())


# ---- as a command ----


@pytest.mark.parametrize("ranks", [1, 2])
def test_command(ranks, tmp_path):
    run = gathered(tmp_path / "run", AXES_3D)
    done = hpcsim("export", "run", ranks=ranks, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["for ParaView: run/fluid.xdmf (open with 'XDMF Reader')"]
    check(run / "fluid.xdmf", AXES_3D)


def test_help():
    assert "RUN" in hpcsim("export", "--help").stdout


def refusal(run):
    """The one line that the command refuses a folder with; the folder stays as it was."""
    before = sorted(run.rglob("*"))
    done = hpcsim("export", run)
    assert done.returncode == 2
    assert sorted(run.rglob("*")) == before
    (line,) = messages(done)
    assert done.stderr.splitlines() == [line]
    return line


def test_a_run_without_fields(tmp_path):
    line = refusal(gathered(tmp_path / "run", AXES_3D, fields=()))
    assert line.endswith(
        "run: holds nothing to export; a run of a fluid does with some of u, p, vorticity "
        "in output.fields"
    )


def test_a_run_that_is_not_gathered(tmp_path):
    record(tmp_path / "run", Ranks.world(), AXES_3D)
    line = refusal(tmp_path / "run")
    assert "run: has frames that are not yet gathered into output.h5; let the run finish" in line
    assert "--restart" in line


def test_a_run_without_frames(tmp_path):
    record(tmp_path / "run", Ranks.world(), AXES_3D, frames=range(0))
    assert "run: holds no frames yet" in refusal(tmp_path / "run")
    gather(tmp_path / "run", {}, Ranks.world())
    assert "run: holds no frames yet" in refusal(tmp_path / "run")


def test_no_run_folder(tmp_path):
    assert "not a run folder" in refusal(tmp_path)
