"""Whether a document has exactly the form of a type in tests/lab/src/world.rs.

The types are read from the Rust source, so that there is one place that says what the form is.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).resolve().parents[2] / "lab" / "src" / "world.rs"


class Form(NamedTuple):
    """Structs by name (field -> type), enums by name (their values)."""

    structs: "dict[str, dict[str, str]]"
    enums: "dict[str, list[str]]"


def read(text: str) -> Form:
    """The types of a Rust source; every struct has to refuse unknown fields."""
    structs, enums = {}, {}
    for name, body in re.findall(r"#\[serde\(deny_unknown_fields[^\n]*\npub struct (\w+) \{\n(.*?)\n\}", text, re.S):
        found = re.findall(r'(?:#\[serde\(rename = "(\w+)"\)\]\s+)?pub (\w+): ([^\n]+),\n', body + "\n")
        structs[name] = {renamed or field: kind for renamed, field, kind in found}
    for name, body in re.findall(r'rename_all = "kebab-case"\)\]\npub enum (\w+) \{\n(.*?)\n\}', text, re.S):
        enums[name] = [re.sub(r"(?<!^)(?=[A-Z])", "-", value).lower() for value in re.findall(r"(\w+),", body)]
    assert len(structs) == text.count("pub struct ") and len(enums) == text.count("pub enum ")
    return Form(structs, enums)


FORM = read(SOURCE.read_text())


def problems(value: Any, kind: str = "World", where: str = "") -> "list[str]":
    """What serde would refuse, each with its place; nothing for a document of that form."""
    if kind in FORM.structs:
        return _struct(value, FORM.structs[kind], where or kind)
    inner = re.fullmatch(r"(Option|Vec)<(.+)>", kind)
    if inner and inner.group(1) == "Option":
        return [] if value is None else problems(value, inner.group(2), where)
    if inner:
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        return [found for i, item in enumerate(value) for found in problems(item, inner.group(2), f"{where}[{i}]")]
    mapped = re.fullmatch(r"BTreeMap<String, (.+)>", kind)
    if mapped:
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no object"]
        return [found for key, item in value.items() for found in problems(item, mapped.group(1), f"{where}.{key}")]
    return [] if _is(value, kind) else [f"{where}: {value!r} is no {kind}"]


def _struct(value: Any, fields: "dict[str, str]", where: str) -> "list[str]":
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no object"]
    found = [f"{where}: unknown field {key}" for key in value if key not in fields]
    found += [f"{where}: field {key} is missing" for key in fields if key not in value]
    for key, kind in fields.items():
        found += problems(value[key], kind, f"{where}.{key}") if key in value else []
    return found


def _is(value: Any, kind: str) -> bool:
    number = re.fullmatch(r"([iu])(\d+)", kind)
    if number:
        bits = int(number.group(2)) - (number.group(1) == "i")
        lowest = -(2**bits) if number.group(1) == "i" else 0
        return type(value) is int and lowest <= value < 2**bits
    if kind == "Ipv4Addr":
        return isinstance(value, str) and isinstance(ipaddress.ip_address(value), ipaddress.IPv4Address)
    if kind in FORM.enums:
        return value in FORM.enums[kind]
    assert kind in ("String", "bool"), f"a type this check does not know: {kind}"
    return isinstance(value, {"String": str, "bool": bool}[kind])
