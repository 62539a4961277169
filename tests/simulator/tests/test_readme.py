"""The README names every mend, and no other; every mend says what AWS does and what moto did."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]


def functions():
    """Name and docstring of every public function that `mends/__init__.py` lists."""
    listed = set(re.findall(r"(\w+\.\w+)(?=,)", (FOLDER / "mends" / "__init__.py").read_text()))
    for path in sorted((FOLDER / "mends").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and f"{path.stem}.{node.name}" in listed:
                yield f"{path.stem}.{node.name}", ast.get_docstring(node) or ""


def test_the_readme_has_a_row_for_every_mend():
    rows = set(re.findall(r"^\| `(\w+\.\w+)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE))
    assert rows == {name for name, _ in functions()}


def test_every_mend_says_what_aws_does_and_what_moto_did():
    for name, text in functions():
        assert text.startswith("Not a mend") or (text.startswith("AWS: ") and "\nmoto: " in text), name
