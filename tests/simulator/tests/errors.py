"""What a call is refused with."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError


def code_of(call: Any, *args: Any, **kwargs: Any) -> str:
    """The error code with which AWS refuses this call; a call that succeeds fails the test."""
    with pytest.raises(ClientError) as error:
        call(*args, **kwargs)
    return error.value.response["Error"]["Code"]
