"""Bodies in `aws-chunked` form: each chunk's signature, the checksum behind the last one. S3 only.

https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from typing import Iterable, NamedTuple, Optional

from . import sigv4
from .refusals import Refused

SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
FORMS = (SIGNED, SIGNED_TRAILER, UNSIGNED_TRAILER)
# All chunks but the last one have at least this many bytes.
_LEAST = 8192


class Seal(NamedTuple):
    """What chunk signatures follow from: the key, date and scope of the request, and its signature."""

    key: bytes
    date: str
    scope: sigv4.Scope
    signature: str


class _Chunk(NamedTuple):
    data: bytes
    signature: Optional[str]


def check(body: bytes, form: str, length: Optional[str], seal: Seal) -> bytes:
    """The decoded body; raises Refused if a length, a signature or a checksum is not what it should be."""
    try:
        parts, trailer = _split(body)
    except ValueError as error:
        raise Refused("IncompleteBody", "The request body terminated unexpectedly.") from error
    data = b"".join(part.data for part in parts)
    if length is None or not length.isdigit() or int(length) != len(data):
        message = "You did not provide the number of bytes specified by the x-amz-decoded-content-length header."
        raise Refused("IncompleteBody", message)
    if any(len(part.data) < _LEAST for part in parts[:-2]):
        raise Refused("InvalidChunkSizeError", "Only the last chunk is allowed to have a size less than 8192 bytes")
    if form != UNSIGNED_TRAILER:
        _check_signatures(parts, trailer if form == SIGNED_TRAILER else None, seal)
    check_sums(data, trailer)
    return data


def _split(body: bytes) -> "tuple[list[_Chunk], list[tuple[str, str]]]":
    """Chunks (the last one is empty) and the lines of the trailer."""
    chunks: "list[_Chunk]" = []
    start = 0
    while not chunks or chunks[-1].data:
        end = body.index(b"\r\n", start)
        size, _, extension = body[start:end].decode("ascii").partition(";")
        name, _, signature = extension.partition("=")
        stop = end + 2 + int(size, 16)
        chunks.append(_Chunk(body[end + 2 : stop], signature if name == "chunk-signature" else None))
        if chunks[-1].data and body[stop : stop + 2] != b"\r\n":
            raise ValueError("a chunk does not end where it says")
        start = stop + 2 if chunks[-1].data else stop
    lines = [line.decode("ascii") for line in body[start:].split(b"\r\n") if line]
    return chunks, [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]


def _check_signatures(parts: "list[_Chunk]", trailer: "Optional[list[tuple[str, str]]]", seal: Seal) -> None:
    """Each chunk is signed with the signature before it; the trailer with that of the last chunk."""
    before = seal.signature
    head = f"{sigv4.ALGORITHM}-PAYLOAD\n{seal.date}\n{seal.scope}"
    for part in parts:
        text = f"{head}\n{before}\n{sigv4.EMPTY}\n{hashlib.sha256(part.data).hexdigest()}"
        before = _same(sigv4.sign(seal.key, text), part.signature)
    if trailer is not None:
        lines = "".join(f"{name}:{value}\n" for name, value in trailer if name != "x-amz-trailer-signature")
        digest = hashlib.sha256(lines.encode()).hexdigest()
        text = f"{sigv4.ALGORITHM}-TRAILER\n{seal.date}\n{seal.scope}\n{before}\n{digest}"
        _same(sigv4.sign(seal.key, text), dict(trailer).get("x-amz-trailer-signature"))


def _same(computed: str, given: Optional[str]) -> str:
    if given is None or not hmac.compare_digest(computed, given):
        raise Refused("SignatureDoesNotMatch")
    return computed


def check_sums(data: bytes, said: "Iterable[tuple[str, str]]") -> None:
    """The checksums of a trailer or of headers, those whose algorithm Python has; CRC32C and CRC64NVME are taken as
    they are.
    """
    sums = {
        "x-amz-checksum-crc32": lambda: zlib.crc32(data).to_bytes(4, "big"),
        "x-amz-checksum-sha1": lambda: hashlib.sha1(data).digest(),
        "x-amz-checksum-sha256": lambda: hashlib.sha256(data).digest(),
    }
    for name, value in said:
        if name in sums and base64.b64encode(sums[name]()).decode() != value:
            algorithm = name.rsplit("-", 1)[-1].upper()
            raise Refused("BadDigest", f"The {algorithm} you specified did not match the calculated checksum.")
