"""The commands. Each one imports what it needs when it is called, so that `--help` is instant."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hpcsim.errors import BAD_INPUT, FAILED, FINISHED, HpcsimError, nearest
from hpcsim.parallel.launcher import launched_rank
from hpcsim.parallel.signals import StopSignals

#: What a shell gives for Ctrl-C in a command that has nothing to save.
INTERRUPTED = 130


class Commands(click.Group):
    """A group that suggests the nearest command for a misspelt one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            hint = nearest(args[0], list(self.commands))
            raise click.UsageError(
                f"no such command: {args[0]}{hint} (commands: {', '.join(self.commands)})"
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hpcsim")
def hpcsim() -> None:
    """MPI-parallel simulations in computational mechanics.

    Start with 'hpcsim cases', then 'hpcsim run CASE' or 'mpirun -n 2 hpcsim run CASE'.
    """


def main() -> None:
    """Entry point: run the command, print errors once, leave with the same code on every rank."""
    sys.exit(call(sys.argv[1:] or ["--help"]))


def call(args: list[str]) -> int:
    """Run a command; its exit code. Errors are printed by rank 0 alone."""
    speaks = launched_rank() in (None, 0)
    lines: tuple[str, ...] = ()
    # A run catches signals from here on: one that comes while modules are still being loaded
    # must not kill what can be stopped and restarted.
    stop = StopSignals() if args[:1] == ["run"] else contextlib.nullcontext()
    try:
        with stop, contextlib.nullcontext() if speaks else silence():
            result = hpcsim.main(args, standalone_mode=False, obj=stop)
        code = result if isinstance(result, int) else FINISHED
    except click.ClickException as problem:
        code, lines = BAD_INPUT, (problem.format_message(),)
    except HpcsimError as problem:
        code, lines = problem.exit_code, problem.lines
    except (KeyboardInterrupt, click.Abort):
        code, lines = INTERRUPTED, ("interrupted",)
    except Exception as problem:
        from hpcsim.parallel.ending import one_line

        code, lines = FAILED, (one_line(problem),)
    if speaks:
        for line in lines:
            print(f"hpcsim: {line}", file=sys.stderr)
    return code


@contextlib.contextmanager
def silence() -> Any:
    """Keep ranks other than 0 from writing to the terminal."""
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        yield


def on_rank_0(work: Callable[[], Any]) -> Any:
    """Do the work of a command that needs no ranks; under mpirun only rank 0 does it."""
    if launched_rank() is None:
        return work()
    from hpcsim.parallel.ending import ending_all
    from hpcsim.parallel.ranks import Ranks
    from hpcsim.terminal import Terminal

    ranks = Ranks.world()
    with ending_all(ranks, Terminal(ranks)):
        return ranks.on_root(work)


@hpcsim.command()
@click.argument("case")
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key: --set time.end=2."
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; default runs/CASE.")
@click.option(
    "--restart", is_flag=True, help="Go on from the newest good checkpoint of the folder."
)
@click.option("--force", is_flag=True, help="Set what is in the folder aside and start anew.")
@click.option(
    "--dry-run", is_flag=True, help="Check the case and say what would run; write nothing."
)
@click.pass_obj
def run(
    stop: StopSignals,
    case: str,
    changes: tuple[str, ...],
    out: Path | None,
    restart: bool,
    force: bool,
    dry_run: bool,
) -> int:
    """Run a built-in case or a TOML file."""
    if restart and force:
        raise click.UsageError("--restart and --force exclude each other")
    from hpcsim.driver import Order, decide, execute
    from hpcsim.dry_run import describe
    from hpcsim.parallel.ending import ending_all
    from hpcsim.parallel.ranks import Ranks
    from hpcsim.terminal import Terminal

    ranks = Ranks.world()
    terminal = Terminal(ranks)
    order = Order(case, changes, out, restart, force or (dry_run and not restart))
    with ending_all(ranks, terminal):
        if dry_run:
            job, folder = decide(order, ranks)
            return describe(job, folder.path, restart, ranks, terminal)
        return execute(order, ranks, stop, terminal)[0]


@hpcsim.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def cases(as_json: bool) -> None:
    """List the built-in cases, by model."""
    on_rank_0(lambda: list_cases(as_json))


def list_cases(as_json: bool) -> None:
    """Print name and title of every built-in case."""
    import json
    import tomllib

    from hpcsim import models

    rows = []
    for name, path in models.builtin_cases().items():
        identity = tomllib.loads(path.read_text())["case"]
        rows.append({"name": name, "model": identity["model"], "title": identity["title"]})
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for model in sorted({row["model"] for row in rows}):
        click.echo(f"{model}:")
        for row in rows:
            if row["model"] == model:
                click.echo(f"  {row['name']:<20} {row['title']}")


@hpcsim.command()
@click.argument("case")
def show(case: str) -> None:
    """Print the complete, commented TOML of a case: copy, edit, run."""

    def work() -> None:
        from hpcsim.case.read import read_case
        from hpcsim.case.show import as_toml

        click.echo(as_toml(read_case(case)), nl=False)

    on_rank_0(work)


@hpcsim.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def info(folder: Path, as_json: bool) -> None:
    """Tell what a run folder holds: status, time reached, shapes, figures."""

    def work() -> None:
        from hpcsim.output.info import describe

        click.echo(describe(folder, as_json))

    on_rank_0(work)


@hpcsim.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Picture file; default RUN/plot.png.")
def plot(folder: Path, out: Path | None) -> None:
    """Draw the pictures that fit the model."""

    def work() -> None:
        from hpcsim.look.plot import draw

        click.echo(f"picture: {draw(folder, out)}")

    on_rank_0(work)


@hpcsim.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Movie file, .mp4 or .gif; default RUN/movie.mp4, without ffmpeg RUN/movie.gif.",
)
def movie(folder: Path, out: Path | None) -> None:
    """Animate the frames of a run."""

    def work() -> None:
        from hpcsim.look.movie import animate

        click.echo(f"movie: {animate(folder, out)}")

    on_rank_0(work)


@hpcsim.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
def export(folder: Path) -> None:
    """Write XDMF files for ParaView beside the results; the data are not copied."""

    def work() -> None:
        from hpcsim.output.export import export as write

        for file in write(folder):
            click.echo(f"for ParaView: {file} (open with 'XDMF Reader')")

    on_rank_0(work)


@hpcsim.command()
@click.argument("names", nargs=-1, metavar="[STUDY]...")
@click.option("--quick", is_flag=True, help="Coarser and shorter: minutes become seconds.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs/verify"),
    help="Folder for tables and plots; default runs/verify.",
)
def verify(names: tuple[str, ...], quick: bool, out: Path) -> int:
    """Run convergence and validation studies: tables (JSON) and plots."""
    from hpcsim.parallel.ending import ending_all
    from hpcsim.parallel.ranks import Ranks
    from hpcsim.terminal import Terminal
    from hpcsim.verify.study import verify as run_studies

    ranks = Ranks.world()
    terminal = Terminal(ranks)
    with ending_all(ranks, terminal):
        return run_studies(names, quick, out, ranks, terminal)


@hpcsim.command()
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def bench(names: tuple[str, ...], as_json: bool) -> int:
    """Measure speed against limits and peers, as ratios in one run."""

    def work() -> int:
        from hpcsim.bench import measure

        return measure(names, as_json)

    return on_rank_0(work)


@hpcsim.command()
def doctor() -> int:
    """Check versions and abilities, try MPI and parallel HDF5, say how to mend what is wrong."""

    def work() -> int:
        from hpcsim.doctor import examine

        return examine()

    return on_rank_0(work)
