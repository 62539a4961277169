"""A request as it came over the wire, which is what a signature covers."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional


class Wire(NamedTuple):
    """Method, path and query as sent (still encoded), headers in order with their names in lower case, body."""

    method: str
    path: str
    query: str
    headers: "list[tuple[str, bytes]]"
    body: bytes

    def header(self, name: str) -> Optional[str]:
        """The first header of that name (lower case), without the space around it."""
        return next((value.decode("latin-1").strip() for key, value in self.headers if key == name), None)


# Where the HTTP server leaves the headers as they came: WSGI joins, renames and drops some.
HEADERS = "simulator.headers"


def read_wire(environ: "dict[str, Any]", body: bytes) -> Wire:
    """The request of a WSGI environment."""
    target = environ["RAW_URI"]
    path, _, query = target.partition("?")
    if "://" in path:
        path = "/" + path.split("://", 1)[1].partition("/")[2]
    headers = [(name.lower(), value.encode("latin-1")) for name, value in environ[HEADERS]]
    return Wire(environ["REQUEST_METHOD"], path or "/", query, headers, body)
