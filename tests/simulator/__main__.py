"""`python -m simulator --port 0`: serves AWS on 127.0.0.1 until it is told to stop."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import Any

from . import seed
from .events import InstanceEvents
from .settle import Later


def main() -> int:
    """Parses arguments, mends moto, warms it up, serves."""
    arguments = _arguments()
    os.environ.update(seed.environment())  # before anything imports moto
    later = Later(arguments.settle)
    events = InstanceEvents(open(arguments.state_events, "a", encoding="utf-8") if arguments.state_events else None)

    from .mends import Options, apply

    options = Options(later=later, events=events, machines=arguments.machines)
    apply(options)
    server = _server(arguments, options)
    from .warm import warm_up

    warm_up(server)
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--port-file", help="write the port here once it answers")
    parser.add_argument("--state-events", help="append launches and terminations here, one JSON object a line")
    parser.add_argument("--settle", type=float, default=0.3, help="seconds until what AWS does later has happened")
    parser.add_argument("--machines", action="store_true", help="instances wait for what is reported of machines")
    parser.add_argument("--region", help="whose world is told; without it the region that has instances")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when whoever started it does")
    return parser.parse_args()


def _exit_with_stdin() -> None:
    """Waits for the end of standard input, then ends the process."""
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


def _server(arguments: argparse.Namespace, options: Any) -> Any:
    """The HTTP server, bound but not yet serving."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    from .app import State, application

    class QuietHandler(MotoRequestHandler):
        """No line per request; answers leave at once."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_request(self, *_arguments: Any) -> None:
            pass

    state = State(later=options.later, lock=options.lock, region=arguments.region)
    program = application(DomainDispatcherApplication(create_backend_app), state)
    server = make_server("127.0.0.1", arguments.port, program, threaded=True, request_handler=QuietHandler)
    server.daemon_threads = True
    server.simulator_state = state
    return server


def _write_whole(path: str, text: str) -> None:
    """Writes beside and renames, so that a reader sees all of it or nothing."""
    with open(path + ".partial", "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(path + ".partial", path)


if __name__ == "__main__":
    sys.exit(main())
