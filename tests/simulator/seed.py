"""What exists before anybody has called: machine images, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from typing import Any

CANONICAL = "099720109477"
DEBIAN = "136693071363"
FLATCAR = "075585003325"
AMAZON = "137112412989"

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}


def images() -> "list[dict[str, Any]]":
    """The images, in the form in which moto reads them."""
    seeded = []
    for arch in ("amd64", "arm64"):
        seeded += [
            _image(
                CANONICAL, f"ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-{arch}-server-20260714", arch, "/dev/sda1"
            ),
            _image(CANONICAL, f"ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-{arch}-server-20260714", arch, "/dev/sda1"),
            _image(DEBIAN, f"debian-12-{arch}-20260713-2537", arch, "/dev/xvda"),
            _image(DEBIAN, f"debian-13-{arch}-20260713-2537", arch, "/dev/xvda"),
            _image(AMAZON, f"al2023-ami-2023.12.20260710.0-kernel-6.1-{_ARCHITECTURES[arch]}", arch, "/dev/xvda"),
        ]
    seeded.append(_image(FLATCAR, "Flatcar-stable-4230.2.0-hvm", "amd64", "/dev/xvda"))
    # The date in this name is older than the release: a trap for whoever takes the newest by name.
    name = "ubuntu/images/hvm-ssd-gp3/ubuntu-resolute-26.04-amd64-server-20220404"
    seeded.append(_image(CANONICAL, name, "amd64", "/dev/sda1"))
    # In the lab its kernel panics (tests/lab/src/host/recipe.rs): for what operators are told of an image that cannot boot.
    seeded.append(_image(DEBIAN, "kctl-lab-panics-amd64-20260713-1", "amd64", "/dev/xvda"))
    return seeded


def environment() -> "dict[str, str]":
    """The environment moto has to see before it is imported: our images, and its own checks on."""
    return {
        "MOTO_AMIS_PATH": _image_file(),
        "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
        "MOTO_ENABLE_AMI_VALIDATION": "1",
        "MOTO_ENABLE_KEYPAIR_VALIDATION": "1",
        "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "1",
    }


def _image(owner: str, name: str, arch: str, root_device: str) -> "dict[str, Any]":
    digest = hashlib.sha256(name.encode()).hexdigest()
    date = name.rsplit("-", 1)[-1] if name.rsplit("-", 1)[-1].isdigit() else "20260713"
    date = date if len(date) == 8 else "20260713"
    return {
        "ami_id": "ami-" + digest[:17],
        "name": name,
        "description": name,
        "owner_id": owner,
        "public": True,
        "architecture": _ARCHITECTURES[arch],
        "root_device_name": root_device,
        "root_device_type": "ebs",
        "virtualization_type": "hvm",
        "hypervisor": "xen",
        "image_location": f"{owner}/{name}",
        "creation_date": f"{date[:4]}-{date[4:6]}-{date[6:]}T06:00:00.000Z",
    }


def _image_file() -> str:
    """Writes the images to a file named by their content, once."""
    text = json.dumps(images(), indent=1)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = os.path.join(tempfile.gettempdir(), f"simulator-images-{os.getuid()}-{digest}.json")
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path))
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(partial, path)
    return path
