#!/bin/sh
# Makes (once) the Python environment of the simulator and prints its path.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/../venv" "$here/requirements.txt"
