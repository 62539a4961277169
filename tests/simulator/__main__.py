"""`python -m simulator --port 0`: serves AWS on 127.0.0.1 until it is told to stop."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import Any, Optional

from . import warm
from .settle import Later


def main(argv: "Optional[list[str]]" = None) -> int:
    """Parses arguments, mends moto once it is warm, serves."""
    arguments = _arguments(argv)
    moto = warm.moto()
    later = Later(arguments.settle)

    from .app import State, application, reset
    from .mends import Options, apply
    from .shapes import checked

    options = Options(later=later, machines=arguments.machines)
    if not arguments.bare:
        apply(options)
        moto = checked(moto, later)
    state = State(later=later, lock=options.lock, region=arguments.region)
    _identities(state, arguments.session_seconds)
    reset(state)
    if arguments.strict:
        _close_the_gate(state, arguments.operator_credentials)
    server = _server(application(moto, state), arguments.port)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    if arguments.port_file:
        _write_whole(arguments.port_file, f"{server.server_address[1]}\n")
    if arguments.until_stdin_closes:
        threading.Thread(target=_exit_with_stdin, daemon=True).start()
    print(f"listening on {address}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    return 0


def _arguments(argv: "Optional[list[str]]") -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--port-file", help="write the port here once it answers")
    parser.add_argument("--settle", type=float, default=0.3, help="seconds until what AWS does later has happened")
    parser.add_argument("--machines", action="store_true", help="instances wait for what is reported of machines")
    parser.add_argument("--region", help="whose world is told; without it the region that has instances")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when whoever started it does")
    parser.add_argument("--bare", action="store_true", help="moto without a mend, to see what a new one has right")
    parser.add_argument("--strict", action="store_true", help="verify signatures, evaluate policies")
    parser.add_argument("--operator-credentials", help="with --strict: write an administrator's credentials file here")
    parser.add_argument(
        "--session-seconds", type=float, default=6 * 3600.0, help="how long an instance's session lasts"
    )
    arguments = parser.parse_args(argv)
    if arguments.operator_credentials and not arguments.strict:
        parser.error("--operator-credentials needs --strict: without it any credentials do")
    return arguments


def _identities(state: Any, session_seconds: float) -> None:
    """Sessions are issued and remembered whether or not anybody verifies them."""
    from .auth.sessions import Sessions

    state.sessions = Sessions(session_seconds)
    state.sessions.install()


def _close_the_gate(state: Any, credentials: Optional[str]) -> None:
    """From here on only what is signed and allowed passes; the administrator may do everything."""
    from .auth.gate import Gate
    from .auth.sessions import write_credentials

    with state.lock:
        key = state.sessions.administrator()
        state.gate = Gate(state.sessions)
    if credentials:
        write_credentials(credentials, key)


def _exit_with_stdin() -> None:
    """Waits for the end of standard input, then ends the process."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def _server(program: Any, port: int) -> Any:
    """An HTTP server, bound but not yet serving: connections are kept until it does."""
    from moto.moto_server.werkzeug_app import MotoRequestHandler
    from werkzeug.serving import make_server

    class QuietHandler(MotoRequestHandler):
        """No line per request; answers leave at once; headers are kept as they came, for signatures cover them."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def make_environ(self) -> "dict[str, Any]":
            environ = super().make_environ()
            environ["simulator.headers"] = self.headers.items()
            return environ

        def log_request(self, *_arguments: Any) -> None:
            pass

    server = make_server("127.0.0.1", port, program, threaded=True, request_handler=QuietHandler)
    server.daemon_threads = True
    return server


def _write_whole(path: str, text: str) -> None:
    """Writes beside and renames, so that a reader sees all of it or nothing."""
    with open(path + ".partial", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".partial", path)


if __name__ == "__main__":
    sys.exit(main())
