"""Credentials: the administrator's, which is a user like any other, and sessions of roles, which end.

What is here is issued with and without `--strict`; only with it are they asked for. Instances get
their sessions here, from the role in their profile, for the metadata service to hand out.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Optional

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.iam.models import AccessKey, iam_backends
from moto.sts.models import STSBackend, sts_backends

from ..mends.patch import replace

ADMINISTRATOR = "administrator"
ACCOUNT = DEFAULT_ACCOUNT_ID
# Ended sessions are remembered this long, so that their keys are said to be expired and not unknown.
_MEMORY = 24 * 3600.0


@dataclass(frozen=True)
class Session:
    """Temporary credentials of a role. `issued` and `expires` are seconds since 1970."""

    access_key: str
    secret: str
    token: str
    issued: float
    expires: float
    role_arn: str
    name: str

    def credentials(self) -> "dict[str, str]":
        """In the words of the metadata service."""
        return {
            "AccessKeyId": self.access_key,
            "SecretAccessKey": self.secret,
            "Token": self.token,
            "Expiration": _stamp(self.expires),
        }


class Sessions:
    """Every session that was issued. `seconds`: how long an instance's lasts, and the most any lasts."""

    def __init__(self, seconds: float = 6 * 3600.0) -> None:
        self.seconds = seconds
        self._by_key: "dict[str, Session]" = {}
        self._of_instances: "dict[tuple[str, str], Session]" = {}
        self._administrator: Optional[AccessKey] = None

    def install(self) -> None:
        """Remembers what sts:AssumeRole hands out. Once per process."""

        @replace(STSBackend, "assume_role")
        def assume_role(original: Any, backend: Any, **asked: Any) -> Any:
            assumed = original(backend, **{**asked, "duration": min(asked["duration"], self.seconds)})
            self._remember(assumed)
            return assumed

    def administrator(self) -> AccessKey:
        """The access key of a user who may do everything; the same one after a reset."""
        backend = iam_backends[ACCOUNT]["aws"]
        if ADMINISTRATOR not in backend.users:
            backend.create_user("us-east-1", ADMINISTRATOR, "/", [])
            statement = '{"Effect": "Allow", "Action": "*", "Resource": "*"}'
            document = f'{{"Version": "2012-10-17", "Statement": [{statement}]}}'
            backend.put_user_policy(ADMINISTRATOR, "AdministratorAccess", document)
        if self._administrator is None:
            self._administrator = backend.create_access_key(ADMINISTRATOR)
        key = self._administrator
        if key.access_key_id not in backend.access_keys:
            backend.users[ADMINISTRATOR].access_keys.append(key)
            backend.access_keys[key.access_key_id] = key
        return key

    def find(self, access_key: str) -> Optional[Session]:
        """The session with this access key, ended or not."""
        return self._by_key.get(access_key)

    def for_instance(self, instance_id: str) -> "dict[str, str]":
        """An instance's credentials (AccessKeyId, SecretAccessKey, Token, Expiration), its session named like it.

        The same ones until a quarter of their life (at most an hour) is left, then new ones.
        LookupError: no such instance, or its profile has no role.
        """
        region, role = _role_of_instance(instance_id)
        now = time.time()
        session = self._of_instances.get((instance_id, role.arn))
        if session is None or session.expires - now < min(self.seconds / 4, 3600.0):
            backend: Any = sts_backends[ACCOUNT]["aws"]
            backend.assume_role(
                region_name=region,
                role_session_name=instance_id,
                role_arn=role.arn,
                policy=None,
                duration=self.seconds,
                external_id=None,
            )
            session = next(reversed(self._by_key.values()))
            self._of_instances[(instance_id, role.arn)] = session
        return session.credentials()

    def clear(self) -> None:
        """Forgets every session (after a reset their roles are gone)."""
        self._by_key.clear()
        self._of_instances.clear()

    def _remember(self, assumed: Any) -> None:
        now = time.time()
        for key in [key for key, old in self._by_key.items() if old.expires < now - _MEMORY]:
            del self._by_key[key]
        session = Session(
            access_key=assumed.access_key_id,
            secret=assumed.secret_access_key,
            token=assumed.session_token,
            issued=now,
            expires=assumed.expiration.replace(tzinfo=timezone.utc).timestamp(),
            role_arn=assumed.role_arn,
            name=assumed.session_name,
        )
        self._by_key[session.access_key] = session


def _role_of_instance(instance_id: str) -> "tuple[str, Any]":
    """The region of an instance and the role in its profile."""
    for region, backend in list(ec2_backends[ACCOUNT].items()):
        association = backend.iam_instance_profile_associations.get(instance_id)
        if association is not None:
            name = association.iam_instance_profile.name
            profile = iam_backends[ACCOUNT]["aws"].instance_profiles.get(name)
            if profile is not None and profile.roles:
                return region, profile.roles[0]
    raise LookupError(f"instance {instance_id} has no profile with a role in it")


def write_credentials(path: str, key: AccessKey) -> None:
    """An AWS credentials file, readable by its owner only, whole or not at all."""
    text = f"[default]\naws_access_key_id = {key.access_key_id}\naws_secret_access_key = {key.secret_access_key}\n"
    partial = f"{path}.partial"
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        os.fchmod(out.fileno(), 0o600)
        out.write(text)
    os.replace(partial, path)


def _stamp(when: float) -> str:
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
