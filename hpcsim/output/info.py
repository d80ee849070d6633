"""`hpcsim info`: what a run folder holds."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from hpcsim.output import checkpoint
from hpcsim.output.folder import RunFolder
from hpcsim.output.run import Run


def describe(folder: Path, as_json: bool) -> str:
    """Status, time reached, shapes and figures, as text or JSON."""
    run = Run(folder)
    summary = run.summary
    status = summary["status"]
    if status == "running" and not RunFolder(folder).busy():
        status = "killed"
    saved = [path.name for path in checkpoint.paths(folder / "checkpoints")]
    shapes = {name: list(array.shape) for name, array in sorted(run.arrays.items())}
    recorded = float(run["series/t"][-1]) if "series/t" in run and len(run["series/t"]) else None
    if as_json:
        facts = summary | {
            "status": status,
            "recorded_time": recorded,
            "checkpoints": saved,
            "arrays": shapes,
        }
        return json.dumps(facts, indent=2)
    lines = [
        f"{folder}: {summary['case']} (model {summary['model']}), {status}",
        f"  steps {summary['steps']}, t = {summary['time']:g} s of {run.case['time']['end']:g} s, "
        f"ranks {summary['ranks']}, {summary['wall_seconds']:.1f} s of wall time",
        f"  checkpoints: {', '.join(saved) or 'none'}",
    ]
    if recorded is not None:
        lines.append(f"  frames up to t = {recorded:g} s:")
    for name, array in sorted(run.arrays.items()):
        dims = ", ".join(
            f"{dim} {size}" for dim, size in zip(array.attributes["dims"], array.shape, strict=True)
        )
        lines.append(f"    /{name}  ({dims})  [{array.attributes['units']}]")
    lines += [f"  {name} = {value:.10g}" for name, value in summary["figures"].items()]
    if status in ("killed", "stopped"):
        lines.append(
            f"  go on with: hpcsim run {summary['case']} --restart --out {shlex.quote(str(folder))}"
        )
    return "\n".join(lines)
