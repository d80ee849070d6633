"""A case as commented TOML, generated from its schema: what is printed runs unchanged."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import annotated_types
import tomlkit
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from tomlkit.items import InlineTable, Table

from hpcsim.case.schema import Case

BOUNDS = {
    annotated_types.Gt: ("gt", "> {}"),
    annotated_types.Ge: ("ge", ">= {}"),
    annotated_types.Lt: ("lt", "< {}"),
    annotated_types.Le: ("le", "<= {}"),
}


def as_toml(case: Case) -> str:
    """The complete case, a comment for each key: meaning, unit, what is allowed."""
    document = tomlkit.document()
    for name, field in type(case).model_fields.items():
        part: BaseModel | list[BaseModel] = getattr(case, name)
        document.add(tomlkit.comment(f"---- {field.description} ----"))
        if isinstance(part, list) and len(part) > 1:
            tables = tomlkit.aot()
            for entry in part:
                tables.append(rows_of(entry))
            document.add(name, tables)
        else:
            document.add(name, rows_of(part[0] if isinstance(part, list) else part))
    return tomlkit.dumps(document).rstrip() + "\n"


def rows_of(part: BaseModel) -> Table:
    """A table with a comment above each key."""
    rows = tomlkit.table()
    values = part.model_dump(mode="json")
    for row, detail in type(part).model_fields.items():
        rows.add(tomlkit.comment(comment(detail)))
        rows.add(row, toml_item(values[row]))
        rows.add(tomlkit.nl())
    for row, value in (part.model_extra or {}).items():
        rows.add(tomlkit.comment("yours"))
        rows.add(row, toml_item(value))
    return rows


def toml_item(value: Any) -> Any:
    """A value for tomlkit; a mapping becomes an inline table."""
    if isinstance(value, dict):
        inline: InlineTable = tomlkit.inline_table()
        inline.update(value)
        return inline
    return value


def comment(field: FieldInfo) -> str:
    """`meaning [unit]; allowed: …` of a key."""
    extra = field.json_schema_extra
    unit = extra.get("unit") if isinstance(extra, dict) else ""
    text = field.description or ""
    if unit:
        text += f" [{unit}]"
    allowed = allowed_values(field)
    return f"{text}; {allowed}" if allowed else text


def allowed_values(field: FieldInfo) -> str:
    """The bounds or the choices of a key, as text."""
    texts = []
    for mark in metadata(field):
        for kind, (name, form) in BOUNDS.items():
            if isinstance(mark, kind):
                texts.append(form.format(f"{getattr(mark, name):g}"))
        described = getattr(getattr(mark, "func", None), "text", None)
        if described:
            texts.append(described)
    choices = literals(field.annotation)
    if len(choices) > 1:
        texts.append("one of " + ", ".join(choices))
    return ", ".join(texts)


def metadata(field: FieldInfo) -> list[Any]:
    """The constraints of a key, those inside the branches of a union included."""
    marks = list(field.metadata)
    for branch in get_args(field.annotation):
        for mark in getattr(branch, "__metadata__", ()):
            marks.extend(getattr(mark, "metadata", [mark]))
    return marks


def literals(annotation: Any) -> list[str]:
    """The choices of a Literal, also inside a list or a union."""
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for branch in get_args(annotation) for choice in literals(branch)]
