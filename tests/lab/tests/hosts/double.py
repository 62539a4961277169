"""A metadata service for the tests of hosts alone: IMDSv2 only, identity by source address, content from DIR/ADDRESS.json
({"meta-data": tree, "dynamic": tree, "user-data": text}). Logs each request with its status to standard error."""

import json
import os
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = sys.argv[1]
TOKENS = {}


class Metadata(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=""):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        if self.path != "/latest/api/token":
            return self.answer(404)
        token = secrets.token_urlsafe(30)
        TOKENS[token] = self.client_address[0]
        self.answer(200, token)

    def do_GET(self):
        source = self.client_address[0]
        if TOKENS.get(self.headers.get("X-aws-ec2-metadata-token")) != source:
            return self.answer(401)
        with open(os.path.join(FOLDER, source + ".json")) as file:
            node = json.load(file)
        version, *parts = [part for part in self.path.split("/") if part] or [""]
        if version not in ("latest", "2009-04-04", "2016-09-02", "2018-09-24", "2021-03-23"):
            return self.answer(404)
        for part in parts:
            if not isinstance(node, dict) or part not in node:
                return self.answer(404)
            node = node[part]
        if isinstance(node, dict):
            node = "\n".join(key + "/" * isinstance(value, dict) for key, value in node.items())
        self.answer(200, node)


ThreadingHTTPServer(("169.254.169.254", 80), Metadata).serve_forever()
