"""moto, loaded and called once for every service: the first call of each costs up to three seconds."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

from . import seed

REGION = "us-east-1"


@functools.lru_cache(maxsize=1)
def moto() -> Any:
    """moto's WSGI program without a mend, warm; once per process. What the calls leave behind goes with the first reset."""
    os.environ.update(seed.environment())  # before anything imports moto
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class SilentHandler(MotoRequestHandler):
        """One request a connection, no line for it."""

        def log_request(self, *_arguments: Any) -> None:
            pass

    program = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, program, request_handler=SilentHandler)
    # In this thread, so that no other one is left when the process forks.
    caller = threading.Thread(target=_call_everything, args=(f"http://127.0.0.1:{server.server_address[1]}",))
    caller.start()
    server.timeout = 0.1
    while caller.is_alive():
        server.handle_request()
    caller.join()
    server.server_close()
    return program


def _call_everything(endpoint: str) -> None:
    import boto3

    def client(service: str) -> Any:
        # Of boto3's own session, whose models later clients find loaded.
        keys = {"aws_access_key_id": "warm", "aws_secret_access_key": "warm"}
        return boto3.client(service, region_name=REGION, endpoint_url=endpoint, **keys)

    client("ec2").describe_images(Owners=["099720109477"])
    client("ec2").describe_instance_types(InstanceTypes=["t3.medium"])
    client("autoscaling").describe_auto_scaling_groups()
    client("elbv2").describe_load_balancers()
    client("iam").list_roles()
    client("route53").list_hosted_zones()
    client("sqs").list_queues()
    client("service-quotas").list_aws_default_service_quotas(ServiceCode="vpc")
    client("events").list_rules()
    client("s3").list_buckets()
    client("sts").get_caller_identity()
