"""The simulator answers as AWS did, where AWS' answers were recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from . import recorded, recorded_table


@pytest.mark.parametrize("name", sorted(recorded.CASES))
def test_answers_are_those_of_aws(aws: Any, name: str) -> None:
    case, said = recorded.CASES[name], recorded.facts()[name]
    found = case.play(aws)
    assert set(said) <= set(found), "a step is missing"
    wrong = [text for step in said for text in recorded.differences(said[step], found[step], step)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif("KCTL_AWS_RECORDED" not in os.environ, reason="needs the recorded answers")
def test_the_table_has_every_case() -> None:
    everything = recorded_table.all_recorded(Path(os.environ["KCTL_AWS_RECORDED"]))
    unexplained = [name for name in everything if name not in recorded.CASES and not recorded_table.reason(name)]
    assert not unexplained, "\n".join(unexplained)
    assert recorded_table.facts_of(everything) == recorded.facts()
    assert recorded_table.table(everything) == recorded_table.TABLE.read_text()
