# Clients of a cluster's API, each call over a connection of its own. `writes.py FOLDER SERVER NAME NAMESPACE record LOG` writes until the
# input ends: a client asks SERVER, and one more each API server that FOLDER/servers names. They create, change and delete ConfigMaps,
# the latter two under the condition that they are as they were known, and read some. A further thread of each server lists and
# watches. Every attempt is a JSON object on a line of LOG.attempts, and everything that lists and watches show one of
# LOG.seen. `... fill BYTES` creates large ones until none is taken any more, and prints the attempts. NAME is what the
# server's certificate has to say.
import ctypes
import http.client
import itertools
import json
import os
import random
import socket
import ssl
import sys
import threading
import time
from urllib.parse import urlsplit

folder, server, name_of_server, namespace, mode = sys.argv[1], urlsplit(sys.argv[2]), *sys.argv[3:6]
PATH = f"/api/v1/namespaces/{namespace}/configmaps"
# Seconds that a call may take, and seconds without an event after which a watch is given up.
LIMIT, QUIET = (10, 0) if mode == "fill" else (2, 10)
# Seconds between two calls of the client of the public name, and of one of a single server.
PUBLIC_PAUSE, SERVER_PAUSE = 0.1, 0.3
# Keys of each client, and of those of single servers together.
OWN, SHARED = 8, 4
# So many in a row that failed are the end of filling.
ENOUGH = 3
# Seconds until the final state must have been listed.
FINAL = 120
PUBLIC = "public"
CLONE_NEWNET = 0x40000000
FAILURES = (OSError, ValueError, KeyError, http.client.HTTPException)

trust = ssl.create_default_context(cafile=f"{folder}/ca.crt")
trust.load_cert_chain(f"{folder}/client.crt", f"{folder}/client.key")
libc = ctypes.CDLL(None, use_errno=True)
own_network = os.open("/proc/self/ns/net", os.O_RDONLY)
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
numbers, calls, lock = itertools.count(1), itertools.count(), threading.Lock()


class Unsent(Exception):
    """The request was not sent: it has no effect."""


def enter(network):
    if libc.setns(network, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def read_servers():
    """Address and network namespace of each API server, by instance."""
    try:
        with open(f"{folder}/servers") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def connect(client):
    """A connection to the next address of the public name, or to a server from within its own host."""
    if client == PUBLIC:
        found = socket.getaddrinfo(server.hostname, server.port or 443, type=socket.SOCK_STREAM)
        address = sorted(one[4] for one in found)[next(calls) % len(found)]
        return socket.create_connection(address[:2], LIMIT)
    at = read_servers()[client]
    network = os.open(at["network"], os.O_RDONLY)
    try:
        # Of this thread only.
        enter(network)
        return socket.create_connection((at["address"], 443), LIMIT)
    finally:
        enter(own_network)
        os.close(network)


def send(client, method, path, body=None, limit=LIMIT):
    """The connection and its answer, whose body is still to be read."""
    connection = http.client.HTTPConnection(server.hostname)
    try:
        plain = connect(client)
        plain.settimeout(LIMIT)
        connection.sock = trust.wrap_socket(plain, server_hostname=name_of_server)
    except FAILURES as error:
        raise Unsent(repr(error)) from error
    try:
        connection.sock.settimeout(limit)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        return connection, connection.getresponse()
    except BaseException:
        connection.close()
        raise


def call(client, method, path, body=None):
    """Status and object."""
    connection, answer = send(client, method, path, body)
    try:
        text = answer.read()
        return answer.status, json.loads(text) if text else {}
    finally:
        connection.close()


def record(file, line):
    with lock:
        print(json.dumps(line), file=file, flush=True)


def attempt(file, client, did, name, value, method, path, body=None, expected=None):
    """One attempt, recorded, and its outcome."""
    outcome, version, why = "unknown", None, ""
    begun = time.time()
    try:
        status, said = call(client, method, path, body)
        if status < 300:
            outcome, version = "done", said.get("metadata", {}).get("resourceVersion")
            value = said["data"]["value"] if did == "read" else value
        elif did == "read" and status == 404:
            outcome = "done"
        else:
            # What the API server itself says no to was not done; what failed behind it may have been.
            outcome = "refused" if status < 500 else "unknown"
            why = f"{status} {said.get('message', '')}"
    except Unsent as error:
        outcome, why = "refused", str(error)
    except FAILURES as error:
        why = repr(error)
    line = {"client": client, "begun": begun, "ended": time.time(), "did": did, "name": name, "value": value}
    line |= {"expected": expected, "outcome": outcome, "why": why}
    # A deletion's answer may have the version of what was deleted.
    line["version"] = int(version) if version and did != "delete" else None
    record(file, line)
    return line


def config_map(name, value, version=None):
    metadata = {"name": name, **({"resourceVersion": str(version)} if version else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


def create(file, client, name, value):
    return attempt(file, client, "create", name, value, "POST", PATH, config_map(name, value))


def step(attempts, client, keys, known):
    """One attempt. `known` has the version of each key, `None` if it is absent, and nothing if that has to be read."""
    name = random.choice(keys)
    at, value, version = f"{PATH}/{name}", f"{client}-{next(numbers)}", known.get(name)
    if name not in known or random.random() < 0.1:
        line = attempt(attempts, client, "read", name, "", "GET", at)
    elif version is None:
        line = create(attempts, client, name, value)
    elif random.random() < 0.2:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": str(version)}}
        line = attempt(attempts, client, "delete", name, "", "DELETE", at, body, version)
    else:
        line = attempt(attempts, client, "update", name, value, "PUT", at, config_map(name, value, version), version)
    if line["outcome"] == "done":
        known[name] = line["version"]
    else:
        known.pop(name, None)


def write(attempts, client):
    keys, known = [f"{client}-{number}" for number in range(OWN)], {}
    if client != PUBLIC:
        keys += [f"shared-{number}" for number in range(SHARED)]
    while not over.wait(PUBLIC_PAUSE if client == PUBLIC else SERVER_PAUSE):
        # One that is off has no address.
        if client == PUBLIC or client in read_servers():
            step(attempts, client, keys, known)


def item_of(thing):
    """Name, value and version; nothing of objects that others make."""
    value = (thing.get("data") or {}).get("value")
    return value and (thing["metadata"]["name"], value, int(thing["metadata"]["resourceVersion"]))


def list_all(seen, client):
    """Lists the newest state, and returns its version."""
    begun = time.time()
    status, said = call(client, "GET", PATH)
    if status != 200:
        raise ValueError(f"{status} {said.get('message', '')}")
    version = int(said["metadata"]["resourceVersion"])
    items = {item[0]: item[1:] for item in map(item_of, said["items"]) if item}
    line = {"client": client, "kind": "list", "begun": begun, "ended": time.time(), "version": version, "items": items}
    record(seen, line)
    return version


def show_event(seen, client, event):
    """Records an event; false if there is none any more, as after "too old resource version"."""
    kind, thing = event["type"], event["object"]
    if kind == "ERROR":
        return False
    if kind == "BOOKMARK":
        record(seen, {"client": client, "kind": "bookmark", "version": int(thing["metadata"]["resourceVersion"])})
    elif item := item_of(thing):
        line = {"client": client, "kind": "deleted" if kind == "DELETED" else "stored", "name": item[0], "version": item[2]}
        record(seen, line if kind == "DELETED" else line | {"value": item[1]})
    return True


def watch_once(seen, client):
    version = list_all(seen, client)
    query = f"{PATH}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
    connection, answer = send(client, "GET", query, limit=QUIET)
    try:
        while answer.status == 200 and not over.is_set():
            line = answer.readline()
            if not line.endswith(b"\n") or not show_event(seen, client, json.loads(line)):
                return
    finally:
        connection.close()


def watch(seen, client):
    while not over.wait(SERVER_PAUSE):
        if client in read_servers():
            try:
                watch_once(seen, client)
            except (Unsent, *FAILURES):
                # What a watch did not show, the next list does.
                continue


def go_on():
    attempts, seen = (open(f"{sys.argv[6]}.{of}", "w") for of in ("attempts", "seen"))
    started, threads = set(), [threading.Thread(target=write, args=(attempts, PUBLIC))]
    threads[0].start()
    while not over.wait(SERVER_PAUSE):
        for client in read_servers().keys() - started:
            started.add(client)
            for work, file in ((write, attempts), (watch, seen)):
                threads.append(threading.Thread(target=work, args=(file, client)))
                threads[-1].start()
    for thread in threads:
        thread.join()
    end = time.time() + FINAL
    while True:
        try:
            return list_all(seen, PUBLIC)
        except (Unsent, *FAILURES):
            if time.time() > end:
                raise
            time.sleep(SERVER_PAUSE)


def fill(size):
    failed = number = 0
    begun = int(time.time())
    while failed < ENOUGH and not over.is_set():
        number += 1
        name = f"f-{begun}-{number}"
        body = config_map(name, "x" * size)
        # The line does without the value.
        line = attempt(sys.stdout, PUBLIC, "create", name, "", "POST", PATH, body)
        failed = 0 if line["outcome"] == "done" else failed + 1


go_on() if mode == "record" else fill(int(sys.argv[6]))
