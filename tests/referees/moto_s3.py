"""The S3 of moto, one request at a time.

By itself it looks whether an object is there and then writes it, in threads: two writers of one object may both be told
that they were first. Usage: moto_s3.py; it says on stderr where it listens.
"""

import io
import os
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import MotoRequestHandler
from werkzeug.serving import run_simple

os.environ.setdefault("MOTO_PORT", "0")
application = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    # A client that is slow to send must not hold up others.
    length = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    with turn:
        return list(application(environ, start_response))


run_simple("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
