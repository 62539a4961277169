"""The signature's own code against what AWS has published, and against botocore."""

from __future__ import annotations

import base64
import hashlib
import random
import zlib
from typing import Any

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from simulator.auth import chunks, sigv4
from simulator.auth.refusals import Refused
from simulator.auth.wire import Wire

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SCOPE = sigv4.Scope("20130524", "us-east-1", "s3")
DATE = "20130524T000000Z"
HOST = ("host", b"examplebucket.s3.amazonaws.com")


def signature(wire: Wire, payload: str, scope: sigv4.Scope = SCOPE, date: str = DATE, secret: str = SECRET) -> str:
    """The signature over all headers of a request."""
    names = sorted({name for name, _ in wire.headers})
    canonical = sigv4.canonical_request(wire, names, payload, scope.service)
    return sigv4.sign(sigv4.signing_key(secret, scope), sigv4.string_to_sign(date, scope, canonical))


def s3(method: str, path: str, query: str, payload: str, *headers: "tuple[str, bytes]") -> Wire:
    """A request of the S3 examples."""
    own = [("x-amz-content-sha256", payload.encode()), ("x-amz-date", DATE.encode())]
    return Wire(method, path, query, [HOST, *headers, *own], b"")


PUT = hashlib.sha256(b"Welcome to Amazon S3.").hexdigest()


@pytest.mark.parametrize(
    "wire, payload, expected",
    [
        (
            s3("GET", "/test.txt", "", sigv4.EMPTY, ("range", b"bytes=0-9")),
            sigv4.EMPTY,
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            s3(
                "PUT",
                "/test$file.text",
                "",
                PUT,
                ("date", b"Fri, 24 May 2013 00:00:00 GMT"),
                ("x-amz-storage-class", b"REDUCED_REDUNDANCY"),
            ),
            PUT,
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            s3("GET", "/", "lifecycle", sigv4.EMPTY),
            sigv4.EMPTY,
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            s3("GET", "/", "max-keys=2&prefix=J", sigv4.EMPTY),
            sigv4.EMPTY,
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_examples_of_the_s3_documentation(wire, payload, expected):
    assert signature(wire, payload) == expected


def test_the_presigned_example_of_the_s3_documentation():
    query = (
        "X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=any"
    )
    expected = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    assert signature(Wire("GET", "/test.txt", query, [HOST], b""), sigv4.UNSIGNED) == expected


def test_the_example_of_the_iam_documentation():
    headers = [
        ("content-type", b"application/x-www-form-urlencoded; charset=utf-8"),
        ("host", b"iam.amazonaws.com"),
        ("x-amz-date", b"20150830T123600Z"),
    ]
    wire = Wire("GET", "/", "Action=ListUsers&Version=2010-05-08", headers, b"")
    scope = sigv4.Scope("20150830", "us-east-1", "iam")
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    expected = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    assert signature(wire, sigv4.EMPTY, scope, "20150830T123600Z", secret) == expected


CHUNKS = [
    (b"a" * 65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
    (b"a" * 1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
    (b"", "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
]


def chunked(parts: "list[tuple[bytes, str]]") -> bytes:
    """Signed chunks as they go over the wire."""
    return b"".join(b"%x;chunk-signature=%s\r\n%s\r\n" % (len(data), sign.encode(), data) for data, sign in parts)


def seal() -> chunks.Seal:
    """That of the chunked example: its seed signature is checked with it."""
    wire = Wire(
        "PUT",
        "/examplebucket/chunkObject.txt",
        "",
        [
            ("content-encoding", b"aws-chunked"),
            ("content-length", b"66824"),
            ("host", b"s3.amazonaws.com"),
            ("x-amz-content-sha256", chunks.SIGNED.encode()),
            ("x-amz-date", DATE.encode()),
            ("x-amz-decoded-content-length", b"66560"),
            ("x-amz-storage-class", b"REDUCED_REDUNDANCY"),
        ],
        b"",
    )
    seed = signature(wire, chunks.SIGNED)
    assert seed == "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    return chunks.Seal(sigv4.signing_key(SECRET, SCOPE), DATE, SCOPE, seed)


def test_the_chunked_example_of_the_s3_documentation():
    body = chunked(CHUNKS)
    assert len(body) == 66824
    assert chunks.check(body, chunks.SIGNED, "66560", seal()) == b"a" * 66560


@pytest.mark.parametrize(
    "body, length, reason",
    [
        (chunked(CHUNKS).replace(b"aaaa", b"aaab", 1), "66560", "SignatureDoesNotMatch"),
        (chunked([CHUNKS[1], CHUNKS[0], CHUNKS[2]]), "66560", "InvalidChunkSizeError"),
        (chunked(CHUNKS[:1] + CHUNKS[2:]), "65536", "SignatureDoesNotMatch"),
        (chunked(CHUNKS), "66561", "IncompleteBody"),
        (chunked(CHUNKS), None, "IncompleteBody"),
        (chunked(CHUNKS)[:-200], "66560", "IncompleteBody"),
        (b"no chunks", "9", "IncompleteBody"),
    ],
)
def test_chunks_that_were_changed_are_refused(body, length, reason):
    with pytest.raises(Refused) as refused:
        chunks.check(body, chunks.SIGNED, length, seal())
    assert refused.value.reason == reason


def trailer(data: bytes, checksum: bytes) -> bytes:
    """One unsigned chunk with a checksum behind it."""
    return b"%x\r\n%s\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n" % (len(data), data, checksum)


def test_the_checksum_behind_a_body_is_the_bodys():
    data = b"content" * 100
    right = base64.b64encode(zlib.crc32(data).to_bytes(4, "big"))
    assert chunks.check(trailer(data, right), chunks.UNSIGNED_TRAILER, "700", seal()) == data
    with pytest.raises(Refused) as refused:
        chunks.check(trailer(data, b"AAAAAA=="), chunks.UNSIGNED_TRAILER, "700", seal())
    assert refused.value.reason == "BadDigest"


def test_a_signed_trailer_is_part_of_the_chain():
    """Signed by the specification's own words, in a few lines of the test's own."""
    import hmac

    key, head, parts, before = sigv4.signing_key(SECRET, SCOPE), f"{DATE}\n{SCOPE}", [], seal().signature
    for data in (b"a" * 9000, b"bc", b""):
        text = f"AWS4-HMAC-SHA256-PAYLOAD\n{head}\n{before}\n{sigv4.EMPTY}\n{hashlib.sha256(data).hexdigest()}"
        before = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        parts.append((data, before))
    checksum = base64.b64encode(hashlib.sha256(b"a" * 9000 + b"bc").digest()).decode()
    digest = hashlib.sha256(f"x-amz-checksum-sha256:{checksum}\n".encode()).hexdigest()
    end = hmac.new(key, f"AWS4-HMAC-SHA256-TRAILER\n{head}\n{before}\n{digest}".encode(), hashlib.sha256).hexdigest()
    lines = f"x-amz-checksum-sha256:{checksum}\r\nx-amz-trailer-signature:{end}\r\n\r\n"
    body = chunked(parts)[:-2] + lines.encode()
    assert len(chunks.check(body, chunks.SIGNED_TRAILER, "9002", seal())) == 9002
    with pytest.raises(Refused) as refused:
        chunks.check(body.replace(end.encode(), b"0" * 64), chunks.SIGNED_TRAILER, "9002", seal())
    assert refused.value.reason == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    "path, canonical",
    [
        ("/", "/"),
        ("", "/"),
        ("//", "/"),
        ("/a/./b/../c/", "/a/c/"),
        ("/a//b", "/a/b"),
        ("/../a", "/a"),
        ("/a%20b", "/a%2520b"),
        ("/2013-04-01/hostedzone/Z1/rrset/", "/2013-04-01/hostedzone/Z1/rrset/"),
    ],
)
def test_paths_are_normalised_but_for_s3(path, canonical):
    assert sigv4.canonical_path(path, "route53") == canonical
    assert sigv4.canonical_path("/a//b/../c%20d", "s3") == "/a//b/../c%20d"


def test_botocore_signs_the_same():
    """1000 random requests of four services: our signature is the one botocore computed."""
    chance = random.Random(4)
    letters = "aZ09-_.~/ %+=&;:@!$'()*,?#üé\u20ac"

    def text(alphabet: str, most: int) -> str:
        return "".join(chance.choice(alphabet) for _ in range(chance.randrange(most)))

    for _ in range(1000):
        service = chance.choice(["s3", "sts", "route53", "ec2"])
        path = "/" + botocore.auth.quote(text(letters, 12), safe="/~")
        path = path.rstrip(".")  # after `/.` RFC 3986 keeps the slash, botocore does not
        url = f"http://host.example:8080{path}"
        parameters = {text(letters, 6) or "a": text(letters, 6) for _ in range(chance.randrange(4))}
        body = text(letters, 20).encode()
        extra = {f"x-amz-{name}": text("a  b,", 8).strip() for name in "pq"[: chance.randrange(3)]}
        request: Any = botocore.awsrequest.AWSRequest("POST", url, headers=extra, data=body, params=parameters)
        kind = botocore.auth.S3SigV4Auth if service == "s3" else botocore.auth.SigV4Auth
        kind(botocore.credentials.Credentials("KEY", SECRET, "token"), service, "us-east-1").add_auth(request)
        query = request.prepare().url.partition("?")[2]
        headers = [(name.lower(), str(value).encode()) for name, value in request.headers.items()]
        wire = Wire("POST", path, query, [("host", b"host.example:8080"), *headers], body)
        signed = request.headers["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
        date = request.headers["X-Amz-Date"]
        scope = sigv4.Scope(date[:8], "us-east-1", service)
        canonical = sigv4.canonical_request(wire, signed, hashlib.sha256(body).hexdigest(), service)
        ours = sigv4.sign(sigv4.signing_key(SECRET, scope), sigv4.string_to_sign(date, scope, canonical))
        assert request.headers["Authorization"].endswith(f"Signature={ours}"), (
            service,
            request.prepare().url,
            canonical,
        )
