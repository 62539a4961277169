# Writes to a cluster's API, one after the other, each over a connection of its own, and says of each what came of it: one JSON
# object a line. `writes.py FOLDER SERVER NAME NAMESPACE write` goes on until the input ends: it creates ConfigMaps, changes one
# under the condition that it is as it was read, and deletes some. `... fill BYTES` creates large ones until none is taken any
# more. NAME is what the server's certificate has to say.
import http.client
import json
import socket
import ssl
import sys
import threading
import time
from urllib.parse import urlsplit

folder, server, name_of_server, namespace, mode = sys.argv[1], urlsplit(sys.argv[2]), *sys.argv[3:6]
PATH = f"/api/v1/namespaces/{namespace}/configmaps"
# Between two writes, and how long one may take, in seconds.
PAUSE, LIMIT = (0.1, 2) if mode == "write" else (0, 10)
# So many in a row that failed are the end of filling.
ENOUGH = 3

trust = ssl.create_default_context(cafile=f"{folder}/ca.crt")
trust.load_cert_chain(f"{folder}/client.crt", f"{folder}/client.key")
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
calls = 0


def call(method, path, body=None):
    """Status and object; each call goes to the next address of the name."""
    global calls
    calls += 1
    found = socket.getaddrinfo(server.hostname, server.port or 443, type=socket.SOCK_STREAM)
    address = sorted(one[4] for one in found)[calls % len(found)]
    connection = http.client.HTTPConnection(server.hostname)
    with socket.create_connection(address[:2], LIMIT) as plain:
        plain.settimeout(LIMIT)
        with trust.wrap_socket(plain, server_hostname=name_of_server) as connection.sock:
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else {}


def write(did, name, value, method, path, body=None):
    """One write, told; what the API answered to one that was done."""
    outcome, version, why, said = "unknown", None, "", None
    begun = time.time()
    try:
        status, said = call(method, path, body)
        if status < 300:
            outcome, version = "done", said.get("metadata", {}).get("resourceVersion")
        else:
            # What the API server itself says no to was not done; what failed behind it may have been.
            outcome = "refused" if status < 500 else "unknown"
            why = f"{status} {said.get('message', '')}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = repr(error)
    line = {"begun": begun, "ended": time.time(), "did": did, "name": name, "value": value, "outcome": outcome, "why": why}
    # A deletion's answer has the version of what was deleted.
    line["version"] = int(version) if version and did != "delete" else None
    print(json.dumps(line), flush=True)
    return said if outcome == "done" else None


def config_map(name, value, version=None):
    metadata = {"name": name, **({"resourceVersion": version} if version else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def create(name, value):
    return write("create", name, value, "POST", PATH, config_map(name, value))


def read(name):
    try:
        status, said = call("GET", f"{PATH}/{name}")
        return said if status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None


def go_on():
    counter, kept, number = create("counter", "0"), [], 0
    while not over.wait(PAUSE):
        number += 1
        if number % 5 == 0:
            counter = counter or read("counter")
            if counter:
                body = config_map("counter", str(number), counter["metadata"]["resourceVersion"])
                counter = write("update", "counter", str(number), "PUT", f"{PATH}/counter", body)
        elif number % 9 == 0 and kept:
            name = kept.pop(0)
            write("delete", name, "", "DELETE", f"{PATH}/{name}")
        elif create(f"w-{number}", str(number)):
            kept.append(f"w-{number}")


def fill(size):
    failed = number = 0
    begun = int(time.time())
    while failed < ENOUGH and not over.is_set():
        number += 1
        name = f"f-{begun}-{number}"
        # The line does without the value.
        failed = 0 if write("create", name, "", "POST", PATH, config_map(name, "x" * size)) else failed + 1


go_on() if mode == "write" else fill(int(sys.argv[6]))
