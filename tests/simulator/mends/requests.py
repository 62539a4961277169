"""Requests as such: which service they go to."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from .patch import replace


def presigned_calls_go_to_their_service() -> None:
    """AWS: a call signed in its query string (X-Amz-Credential) is as good as one signed in a header.
    moto: looks at the header only, and takes everything else for S3 (GetCallerIdentity -> ListBuckets).
    """

    @replace(DomainDispatcherApplication, "infer_service_region_host")
    def infer(original: Any, dispatcher: Any, environ: Any, path: str) -> Any:
        query = parse_qs(environ.get("QUERY_STRING", ""))
        scope = query.get("X-Amz-Credential", [""])[0].split("/")
        if len(scope) == 5 and scope[3] != "s3" and not environ.get("HTTP_AUTHORIZATION"):
            return f"{scope[3]}.{scope[2]}.amazonaws.com"
        return original(dispatcher, environ, path)
