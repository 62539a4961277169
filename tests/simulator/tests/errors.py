"""What a call is refused with."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError


def code_of(call: Any, *args: Any, **kwargs: Any) -> str:
    """The error code with which AWS refuses this call; a call that succeeds fails the test."""
    return said(call, *args, **kwargs)[0]


def said(call: Any, *args: Any, **kwargs: Any) -> "tuple[str, str]":
    """Code and message with which AWS refuses this call; a call that succeeds fails the test."""
    with pytest.raises(ClientError) as error:
        call(*args, **kwargs)
    found = error.value.response["Error"]
    return found["Code"], found["Message"]
