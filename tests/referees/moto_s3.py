"""The S3 of moto, one request at a time.

By itself it looks whether an object is there and then writes it, in threads: two writers of one object may both be told
that they were first. Usage: moto_s3.py; it says on stderr where it listens. After a number of
seconds was sent to /latency, each request takes so much longer, side by side with others.
"""

import io
import os
import threading
import time

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import MotoRequestHandler
from werkzeug.serving import run_simple

os.environ.setdefault("MOTO_PORT", "0")
application = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()
latency = 0.0


def one_at_a_time(environ, start_response):
    global latency
    # A client that is slow to send must not hold up others.
    length = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    if environ["PATH_INFO"] == "/latency":
        latency = float(environ["wsgi.input"].read())
        start_response("200 OK", [])
        return []
    time.sleep(latency)
    with turn:
        return list(application(environ, start_response))


run_simple("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
