"""An S3 server that breaks its promises, for tests of who notices.

Usage: careless_s3.py races | ignores
  races    looks whether an object is there, and then writes it: two that look at once both write
  ignores  does not know conditional writes
"""

import re
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

MODE = sys.argv[1]
objects = {}
lock = threading.Lock()


class Careless(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def key(self):
        return unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_PUT(self):
        key, body = self.key(), self.body()
        if MODE == "races" and self.headers.get("If-None-Match") == "*":
            if key in objects:
                return self.answer(412)
            time.sleep(0.01)
        with lock:
            objects[key] = (body, time.time())
        self.answer(200, headers=[("ETag", '"1"')])

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            return self.listing(query)
        if self.key() not in objects:
            return self.answer(404)
        body, written = objects[self.key()]
        modified = ("Last-Modified", formatdate(written, usegmt=True))
        self.answer(200, body, [("ETag", '"1"'), modified])

    do_HEAD = do_GET

    def listing(self, query):
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [None])[0]
        contents, folders = "", set()
        for key, (body, written) in sorted(objects.items()):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix):]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
                continue
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(written))
            contents += (
                f"<Contents><Key>{escape(key)}</Key><LastModified>{stamp}</LastModified>"
                f'<ETag>"1"</ETag><Size>{len(body)}</Size></Contents>'
            )
        for folder in sorted(folders):
            contents += f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
        text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        self.answer(200, text.encode(), [("Content-Type", "application/xml")])

    def do_POST(self):
        deleted = ""
        for key in re.findall("<Key>(.*?)</Key>", self.body().decode()):
            with lock:
                objects.pop(key, None)
            deleted += f"<Deleted><Key>{key}</Key></Deleted>"
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())


server = ThreadingHTTPServer(("127.0.0.1", 0), Careless)
print(f"careless at http://127.0.0.1:{server.server_address[1]}", file=sys.stderr, flush=True)
server.serve_forever()
