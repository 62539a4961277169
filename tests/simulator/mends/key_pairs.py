"""SSH key pairs."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import moto.ec2.models.key_pairs as moto_key_pairs
import moto.ec2.utils as moto_utils
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses.key_pairs import KeyPairs

from .patch import replace


def ed25519_fingerprints_are_base64() -> None:
    """AWS: the fingerprint of an ed25519 key is the base64 of the SHA-256 of the OpenSSH key, as
    `ssh-keygen -l` has it (with the padding that ssh-keygen leaves out).
    moto: hex with colons, of the DER form.
    """

    def fingerprint(original: Any, public_key: Any, hash_constructor: Any) -> str:
        if not isinstance(public_key, moto_utils.Ed25519PublicKey):
            return original(public_key, hash_constructor)
        line = public_key.public_bytes(
            encoding=moto_utils.serialization.Encoding.OpenSSH,
            format=moto_utils.serialization.PublicFormat.OpenSSH,
        )
        blob = base64.b64decode(line.split()[1])
        return base64.b64encode(hashlib.sha256(blob).digest()).decode()

    for module in (moto_utils, moto_key_pairs):
        replace(module, "public_key_fingerprint")(fingerprint)


def key_pairs_are_found_by_id() -> None:
    """AWS: KeyPairIds of DescribeKeyPairs, KeyPairId of DeleteKeyPair.
    moto: knows names only, and describes all when asked for an id.
    """

    def name_of(response: Any, identity: str) -> str:
        for pair in response.ec2_backend.key_pairs.values():
            if pair.id == identity:
                return pair.key_name
        raise EC2ClientError("InvalidKeyPair.NotFound", f"The key pair ID '{identity}' does not exist")

    @replace(KeyPairs, "describe_key_pairs")
    def describe(original: Any, response: Any) -> Any:
        identities = response._get_param("KeyPairIds", [])
        if identities:
            response.params["KeyNames"] = [name_of(response, identity) for identity in identities]
        return original(response)

    @replace(KeyPairs, "delete_key_pair")
    def delete(original: Any, response: Any) -> Any:
        identity = response._get_param("KeyPairId")
        if identity:
            response.params["KeyName"] = name_of(response, identity)
        return original(response)
