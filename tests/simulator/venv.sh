#!/bin/sh
# Makes (once) the Python environment of the simulator and prints its path.
# The path carries the hash of requirements.txt, so a change of it makes a new one; a
# lock and a rename make two runs at once safe.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
python=${PYTHON:-python3}
hash=$(sha256sum "$here/requirements.txt" | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kctl
venv=$cache/venv-$hash
mkdir -p "$cache"
exec 9>"$cache/venv-$hash.lock"
flock 9
if [ ! -e "$venv/.complete" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        --requirement "$here/requirements.txt" >&2
    "$venv/bin/python" -m compileall -q "$venv/lib" >/dev/null 2>&1 || true
    : >"$venv/.complete"
fi
echo "$venv"
