"""Creates clusters of several sizes in the AWS simulator and prints a table: calls, seconds, memory of each kctl run.

Calls are counts and repeat; seconds are of this machine and this moment.
usage: bench.py [GROUPS ...]   (default 1 6 30 100; kOps' own figures stand in docs/specification.md)
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]


class Simulator:
    """The AWS simulator as a process, and its counts."""

    def __init__(self, work: pathlib.Path) -> None:
        port = work / "port"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "simulator", "--port", "0", "--port-file", str(port)], stdout=subprocess.DEVNULL
        )
        while not port.exists():
            if self.process.poll() is not None:
                raise SystemExit("the simulator did not start")
            time.sleep(0.05)
        self.url = f"http://127.0.0.1:{port.read_text().strip()}"

    def reset_calls(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/_simulator/calls/reset", method="POST")).read()

    def calls(self) -> dict[str, int]:
        return json.load(urllib.request.urlopen(f"{self.url}/_simulator/calls"))


def kctl(simulator: Simulator, environment: dict[str, str], *arguments: str) -> dict[str, float]:
    """Runs kctl once; its calls, wall seconds and peak memory in MB."""
    simulator.reset_calls()
    began = time.monotonic()
    process = subprocess.Popen(["kctl", *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    if status != 0:
        raise SystemExit(f"kctl {' '.join(arguments)} failed:\n{errors}")
    counted = simulator.calls()
    return {"aws": counted["aws"], "store": counted["s3"], "seconds": took, "mb": usage.ru_maxrss / 1024}


def spec(groups: int, environment: dict[str, str], name: str) -> str:
    """A cluster of that many instance groups: one or three control planes, the rest nodes."""
    planes = 1 if groups < 6 else 3
    zones = ZONES[:planes]
    command = ["kctl", "create", "cluster", name, "--zones", ",".join(zones), "--control-plane-zones", ",".join(zones)]
    text = subprocess.run([*command, "--dry-run", "-o", "yaml"], env=environment, check=True, capture_output=True, text=True)
    documents = text.stdout.split("\n---\n")
    nodes = [document for document in documents if "role: Node" in document]
    others = [document for document in documents if "role: Node" not in document]
    template, zone = nodes[0], zones[0]
    copies = [template.replace(f"nodes-{zone}", f"nodes-{number:03}") for number in range(groups - planes)]
    return "\n---\n".join(others + copies)


def measure(groups: int, work: pathlib.Path) -> None:
    """One size: create, apply, no-op, change of every group, delete."""
    simulator = Simulator(work)
    try:
        name = f"bench{groups}.example.com"
        environment = dict(
            os.environ,
            AWS_ENDPOINT_URL=simulator.url, AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_REGION="us-east-1",
            AWS_EC2_METADATA_DISABLED="true", KCTL_STATE_STORE="s3://bench", KCTL_CLUSTER_NAME=name, KUBECONFIG=str(work / "kubeconfig"),
        )
        environment.pop("AWS_PROFILE", None)
        urllib.request.urlopen(urllib.request.Request(f"{simulator.url}/bench", method="PUT")).read()
        path = work / "cluster.yaml"
        path.write_text(spec(groups, environment, name))
        for what, arguments in [
            ("create -f", ["create", "-f", str(path)]),
            ("plan", ["update"]),
            ("first apply", ["update", "--yes"]),
            ("no change", ["update"]),
            ("delete", ["delete", "cluster", name, "--yes"]),
        ]:
            figures = kctl(simulator, environment, *arguments)
            print(f"{groups:6} {what:12} {figures['aws']:6.0f} {figures['store']:6.0f} {figures['seconds']:8.2f} {figures['mb']:6.0f}", flush=True)
    finally:
        simulator.process.terminate()
        simulator.process.wait()


def dry_run(runs: int = 20) -> float:
    """Median milliseconds of `create cluster --dry-run`."""
    command = ["kctl", "create", "cluster", "a.example.com", "--zones", "us-east-1a", "--dry-run", "-o", "yaml"]
    times = []
    for _ in range(runs):
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append((time.monotonic() - began) * 1000)
    return sorted(times)[runs // 2]


def main() -> None:
    """Prints the table."""
    binary = pathlib.Path(shutil.which("kctl") or "kctl")
    print(f"kctl {binary.stat().st_size / 1e6:.1f} MB on disk; create cluster --dry-run {dry_run():.0f} ms (median of 20)")
    for asset in sorted(path for path in pathlib.Path(os.environ["KCTL_ASSETS"]).rglob("*") if path.name in ("nodeup", "protokube")):
        print(f"{asset.name} {asset.parent.name} {asset.stat().st_size / 1e6:.1f} MB on disk")
    print(f"{'groups':>6} {'':12} {'AWS':>6} {'store':>6} {'seconds':>8} {'MB':>6}")
    for groups in [int(word) for word in sys.argv[1:]] or [1, 6, 30, 100]:
        with tempfile.TemporaryDirectory() as work:
            measure(groups, pathlib.Path(work))


if __name__ == "__main__":
    main()
