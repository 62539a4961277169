"""An instance metadata service and an S3 bucket for one boot script. Signatures are checked from the request as
it arrived, written after AWS' description of Signature Version 4 and not after the script.

usage: server.py CONTENT SETTINGS. Prints its port, then one line per request it answered.
"""
import datetime, hashlib, hmac, http.server, json, sys, urllib.parse
from pathlib import Path

content = Path(sys.argv[1]).read_bytes()
settings = json.loads(sys.argv[2])
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ACCESS = "ASIAIOSFODNN7EXAMPLE"
IMDS_TOKEN = "imds-token"
failures = settings.get("failures", [])


def signature_error(request, region):
    """Why the request's signature is not valid; None if it is."""
    authorization = request.headers.get("Authorization", "")
    algorithm, _, rest = authorization.partition(" ")
    if algorithm != "AWS4-HMAC-SHA256":
        return "no signature"
    fields = dict(field.strip().split("=", 1) for field in rest.split(","))
    access, day, signed_region, service, end = fields["Credential"].split("/")
    if (access, service, end) != (ACCESS, "s3", "aws4_request"):
        return "wrong scope"
    if signed_region != region:
        return "wrong region"
    date = request.headers["X-Amz-Date"]
    when = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs(datetime.datetime.now(datetime.timezone.utc) - when) > datetime.timedelta(minutes=15) or date[:8] != day:
        return "wrong date"
    token = settings.get("token")
    if (request.headers.get("X-Amz-Security-Token") or None) != token:
        return "wrong session token"
    names = fields["SignedHeaders"].split(";")
    must = {"host"} | {name.lower() for name in request.headers if name.lower().startswith("x-amz-")}
    if names != sorted(names) or not must <= set(names):
        return "headers left unsigned"
    payload = request.headers["X-Amz-Content-Sha256"]
    if payload != hashlib.sha256().hexdigest():
        return "wrong payload hash"
    path, _, query = request.path.partition("?")
    encoded = urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~")
    if path != encoded:
        return "path not encoded as S3 wants it"
    headers = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in names)
    canonical = f"{request.command}\n{encoded}\n{query}\n{headers}\n{';'.join(names)}\n{payload}"
    scope = f"{day}/{signed_region}/{service}/{end}"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = b"AWS4" + SECRET.encode()
    for message in (day, signed_region, service, end, f"{algorithm}\n{date}\n{scope}\n{hashed}"):
        key = hmac.digest(key, message.encode(), "sha256")
    return None if hmac.compare_digest(key.hex(), fields["Signature"]) else "wrong signature"


def seen_by_others():
    """True if a process other than this one has the secret on its command line or in its environment."""
    for process in Path("/proc").glob("[0-9]*"):
        for file in ("cmdline", "environ"):
            try:
                if SECRET.encode() in (process / file).read_bytes():
                    return True
            except OSError:
                pass
    return False


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, what, status, body=b"", **headers):
        print(what, flush=True)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        ttl = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if self.path != "/latest/api/token" or not ttl.isdigit():
            return self.answer("imds refused", 400)
        self.answer("imds token", 200, IMDS_TOKEN.encode())

    def do_GET(self):
        if self.path.startswith("/latest/"):
            return self.metadata(self.path.removeprefix("/latest/meta-data/"))
        if self.path.startswith("/mirror/"):
            return self.answer("mirror", 200, content)
        if self.path.startswith("/wrong/"):
            return self.answer("wrong mirror", 200, b"#!/bin/sh\n" + content)
        self.s3()

    def metadata(self, path):
        if self.headers.get("X-aws-ec2-metadata-token") != IMDS_TOKEN:
            return self.answer("imds refused", 401)
        role = {"Code": "Success", "AccessKeyId": ACCESS, "SecretAccessKey": SECRET}
        if settings.get("token"):
            role["Token"] = settings["token"]
        values = {
            "placement/region": settings["region"],
            "services/domain": "amazonaws.com",
            "iam/security-credentials/": "nodes.a.example.com\n",
            "iam/security-credentials/nodes.a.example.com": json.dumps(role),
        }
        if path not in values:
            return self.answer(f"imds has no {path}", 404)
        self.answer("imds", 200, values[path].encode())

    def s3(self):
        if seen_by_others():
            return self.answer("secret seen", 403)
        if failures:
            return self.answer("failed", failures.pop(0))
        if self.path != settings["path"]:
            return self.answer(f"s3 has no {self.path}", 404)
        region = settings.get("bucket_region", settings["region"])
        error = signature_error(self, region)
        if error == "wrong region":
            return self.answer("s3 in another region", 400, x_amz_bucket_region=region)
        if error:
            return self.answer(error, 403)
        self.answer("s3", 200, settings.get("body", "").encode() or content)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
