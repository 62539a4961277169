# AWS calls for scenarios: one JSON object a line in, one out, until the input ends.
import base64
import datetime
import json
import sys

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import ClientError

clients = {}


def client(service):
    if service not in clients:
        # A refusal is what scenarios ask for: it is told at once.
        clients[service] = boto3.client(service, config=Config(retries={"total_max_attempts": 1}))
    return clients[service]


def plain(value):
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "read"):
        return value.read().decode()
    raise TypeError(type(value))


def answer(call):
    try:
        operation = getattr(client(call["service"]), botocore.xform_name(call["operation"]))
        done = operation(**call["parameters"])
        done.pop("ResponseMetadata", None)
        return {"done": done}
    except ClientError as error:
        said = error.response["Error"]
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return {"refused": {"status": status, "code": said["Code"], "message": said.get("Message", "")}}
    except Exception as error:
        return {"failed": repr(error)}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line)), default=plain), flush=True)
