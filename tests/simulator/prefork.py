"""A warm Python that forks: `python -m simulator.prefork` prints `listening on 127.0.0.1:PORT`, and each connection is a copy of it.

A client sends one line, Python code as a JSON string, such as `from simulator.__main__ import main; main(["--until-stdin-closes"])`.
The connection is the copy's standard input and output; behind all that it prints comes a NUL byte if it has ended well. A copy
starts in some 50 ms where a new process takes seconds. `prefork` ends with its own standard input.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback

from . import warm


def main() -> int:
    """Forks until standard input closes."""
    warm.moto()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for copies
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os._exit(_copy(connection))
        connection.close()
    return 0


def _copy(connection: socket.socket) -> int:
    """Runs what the client sends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in (0, 1):
        os.dup2(connection.fileno(), descriptor)
    connection.close()
    try:
        exec(json.loads(_first_line()), {"__name__": "__main__"})
        print(end="\0", flush=True)
        return 0
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        return 1


def _first_line() -> bytes:
    """The first line of standard input, and not a byte more."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise EOFError("the client sent no code")
        line += byte
    return line


if __name__ == "__main__":
    sys.exit(main())
