"""From a case name or file and `--set` to a checked case, or to all of its errors at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hpcsim import models
from hpcsim.case.schema import Case
from hpcsim.errors import InputError, nearest

#: A case file larger than this is a mistake (a data file given for a case).
LARGEST_FILE = 4 << 20


@dataclass
class Source:
    """The raw tables of a case and where each key was said, for messages."""

    tables: dict[str, Any]
    file: str
    said: dict[tuple[str, ...], str]
    written: frozenset[str]  # tables that the file itself has

    def as_written(self, location: Sequence[str | int]) -> tuple[str | int, ...]:
        """A location without the 0 of a list that was written as one table."""
        table, *rest = location
        single = isinstance(self.tables.get(str(table)), dict) and str(rest[:1]) in ("[0]", "['0']")
        return (table, *rest[single:])

    def place(self, location: Sequence[str | int]) -> str:
        """The file or option that set the key at `location`."""
        path = tuple(str(part) for part in location)
        for length in range(len(path), 0, -1):
            if path[:length] in self.said:
                return self.said[path[:length]]
        for key, origin in self.said.items():
            if key[: len(path)] == path and path[0] not in self.written:
                return origin
        return self.file


def read_case(name: str, changes: Mapping[str, Any] | Sequence[str] = ()) -> Case:
    """The checked case of a built-in name or TOML file, with changes on top.

    Changes are `key=value` texts (values in TOML) or a mapping of dotted keys to values.
    """
    source = load(name)
    apply_changes(source, changes)
    return check(source)


def load(name: str) -> Source:
    """The raw tables of a built-in case or a TOML file."""
    builtin = models.builtin_cases()
    path = Path(name)
    if name in builtin:
        path = builtin[name]
        shown = f"{name} (built-in)"
    elif path.suffix == ".toml" or path.is_file():
        shown = name
    else:
        raise InputError(
            f"{name}: no such case or file{nearest(name, list(builtin))} "
            "('hpcsim cases' lists the built-in ones; a file ends in .toml)"
        )
    tables = parse(path, shown)
    return Source(tables, shown, {}, frozenset(tables))


def parse(path: Path, shown: str) -> dict[str, Any]:
    """The tables of a TOML file; what is wrong with the file is one line."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{shown}: too large for a case file ({path.stat().st_size} bytes)")
        text = path.read_bytes().decode("utf-8")
    except OSError as problem:
        raise InputError(f"{shown}: cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{shown}: not a text file (a case is TOML in UTF-8)") from None
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise InputError(f"{shown}: not valid TOML: {problem}") from None
    if not tables:
        raise InputError(
            f"{shown}: empty; a case needs the tables [case], [time] and [output] "
            "('hpcsim show gyroscope' prints a complete one)"
        )
    return tables


def apply_changes(source: Source, changes: Mapping[str, Any] | Sequence[str]) -> None:
    """Put `--set` texts or a mapping of dotted keys on top of the tables; all errors at once."""
    problems: list[str] = []
    pairs: list[tuple[str, str, Any]] = []
    if isinstance(changes, Mapping):
        pairs = [(str(dotted), f"change {dotted!r}", value) for dotted, value in changes.items()]
    else:
        for text in changes:
            dotted, sign, value = text.partition("=")
            if not sign or not dotted.strip():
                problems.append(f"--set {text}: write it as key=value, for example time.end=2")
                continue
            try:
                pairs.append((dotted.strip(), f"--set {text}", toml_value(value.strip())))
            except InputError as problem:
                problems.append(f"--set {text}: {problem}")
    for dotted, said, value in pairs:
        path, origin = tuple(dotted.split(".")), shortened(said, 100)
        try:
            put(source.tables, path, value)
            source.said[path] = origin
        except InputError as problem:
            problems.append(f"{origin}: {problem}")
    if problems:
        raise InputError(*problems)


def toml_value(text: str) -> Any:
    """The value of a TOML expression; a bare word is a string."""
    try:
        parsed = tomllib.loads(f"value = {text}")
        if list(parsed) == ["value"]:
            return parsed["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        pass
    if re.fullmatch(r"[A-Za-z_][\w.+-]*", text):
        return text
    raise InputError(f"{text!r} is neither a TOML value nor a bare word")


def put(tables: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set the value at a dotted path; a number counts into a list of tables."""
    here: Any = tables
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(here, list):
            if not part.isdigit() or int(part) >= len(here):
                raise InputError(
                    f"{'.'.join(path[:depth])} has {len(here)} entries, from 0 on, not {part!r}"
                )
            slot: Any = int(part)
        elif isinstance(here, dict):
            slot = part
        else:
            raise InputError(f"{'.'.join(path[:depth])} is a value, not a table")
        if last:
            here[slot] = value
        elif isinstance(here, dict):
            here = here.setdefault(slot, {})
        else:
            here = here[slot]


def check(source: Source) -> Case:
    """The typed case, or every error of it."""
    identity = source.tables.get("case")
    known = list(models.MODELS)
    model = identity.get("model") if isinstance(identity, dict) else None
    if not isinstance(model, str) or model not in models.MODELS:
        found = (
            f"case.model = {shown_value(model)}: unknown model"
            if model is not None
            else "case.model: missing key"
        )
        hint = nearest(str(model), known)
        raise InputError(
            f"{source.place(['case', 'model'])}: {found}{hint} (allowed: {', '.join(known)})"
        )
    schema = models.load(model).schema
    try:
        case = schema.model_validate(source.tables)
    except ValidationError as problem:
        raise InputError(*descriptions(problem, schema, source)) from None
    problems = models.load(model).problems(case)
    if problems:
        raise InputError(
            *(
                f"{source.place(location)}: {'.'.join(map(str, location))}{text}"
                for location, text in (
                    (source.as_written(dotted.split(".")), text) for dotted, text in problems
                )
            )
        )
    return case


def descriptions(problem: ValidationError, schema: type[BaseModel], source: Source) -> list[str]:
    """One line per wrong key; what the branches of a union say of one key is joined by "or"."""
    by_key: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for error in problem.errors(include_url=False):
        location = error["loc"]
        if error["type"] != "extra_forbidden":
            location = tuple(part for part in location if not is_branch(part))
        by_key.setdefault(location, []).append(error)
    return [describe(location, errors, schema, source) for location, errors in by_key.items()]


def describe(
    location: tuple[str | int, ...],
    errors: list[ErrorDetails],
    schema: type[BaseModel],
    source: Source,
) -> str:
    """One line: file, key, what was found, what is allowed, nearest name."""
    location = source.as_written(location)
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    start = f"{source.place(location)}: {key.removeprefix('.')}"
    kind = errors[0]["type"]
    if kind == "extra_forbidden":
        beside = keys_beside(schema, location)
        table = ".".join(str(part) for part in location[:-1])
        where = f"allowed in [{table}]" if table else "allowed tables"
        hint = in_a_table(schema, location) or nearest(str(location[-1]), beside)
        return f"{start}: unknown key{hint} ({where}: {', '.join(beside)})"
    if kind == "missing":
        return f"{start}: missing {'table' if len(location) == 1 else 'key'}"
    allowed, hint = [], ""
    for error in errors:
        if error["type"] in ("model_type", "model_attributes_type"):
            allowed.append("a table")
        elif error["type"] == "literal_error":
            names = re.findall(r"'([^']*)'", error["ctx"]["expected"])
            hint = hint or nearest(str(error["input"]), names)
            allowed.append(f"one of {', '.join(names)}" if len(names) > 1 else f'"{names[0]}"')
        elif error["type"] in ("too_short", "too_long"):
            side = "at least" if error["type"] == "too_short" else "at most"
            count = error["ctx"]["min_length" if side == "at least" else "max_length"]
            allowed.append(f"a list of {side} {count}")
        elif error["type"] == "string_pattern_mismatch":
            allowed.append("letters and digits, with . _ - between")
        elif error["type"] == "string_too_long":
            allowed.append(f"at most {error['ctx']['max_length']} characters long")
        else:
            message = error["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
            allowed.append(message)
    return f"{start} = {shown_value(errors[0]['input'])}: must be {' or '.join(allowed)}{hint}"


def in_a_table(schema: type[BaseModel], location: Sequence[str | int]) -> str:
    """A key outside of any table: in which table there is one of that name, as a phrase."""
    for table, field in schema.model_fields.items() if len(location) == 1 else ():
        if location[0] in getattr(field.annotation, "model_fields", {}):
            return f"; did you mean {table}.{location[0]}?"
    return ""


def is_branch(part: str | int) -> bool:
    """Whether a part of a pydantic location names a branch of a union, not a key."""
    return isinstance(part, str) and (part in ("float", "int", "str") or "[" in part or "-" in part)


def keys_beside(schema: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """The keys allowed where `location` points, by walking the schema."""
    here: Any = schema
    for part in location[:-1]:
        field = getattr(here, "model_fields", {}).get(str(part))
        if field is not None:
            here = field.annotation
            entries = get_args(here) if get_origin(here) is list else ()
            here = entries[0] if entries else here
    return list(getattr(here, "model_fields", {}))


def shown_value(value: Any) -> str:
    """A value as a user wrote it, shortened."""
    return shortened("true" if value is True else "false" if value is False else repr(value), 60)


def shortened(text: str, most: int) -> str:
    """A text of so many characters at most."""
    return text if len(text) <= most else text[: most - 3] + "..."
