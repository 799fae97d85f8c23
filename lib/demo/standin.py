"""An HTTP server in the place of Tenhou's, for this machine only. It can misbehave on demand, and logs every request.
"""

import email.utils
import hashlib
import json
import os
import re
import select
import socket
import struct
import sys
import threading
import time
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = ("403", "404", "429", "500", "503", "empty", "short", "html", "reset", "slow")
ERROR_PAGE = "<html><head><title>エラー</title></head><body>ただいま混み合っています</body></html>\n".encode()


class Faults:
    """Which requests get a wrong answer. Each of `names` gets one of `kinds` in turn, and has it so many `times` (None:
    always)."""

    def __init__(self, kinds=(), names=(), times=None):
        self.kinds = {name: kinds[i % len(kinds)] for i, name in enumerate(names)}
        self.left = dict.fromkeys(self.kinds, float("inf") if times is None else times)

    def take(self, name):
        """The fault for this request of `name`, or None."""
        if self.left.get(name, 0) <= 0:
            return None
        self.left[name] -= 1
        return self.kinds[name]


class StandIn(ThreadingHTTPServer):
    """Serves a DemoYear on 127.0.0.1:`port` (0: a free one). `running`: the year has lists, but no zip yet.
    `log` is a file that gets a JSON line a request, or None.
    """

    daemon_threads = True
    request_queue_size = 50

    def __init__(self, year, faults, port=0, running=False, slow_seconds=30, log=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.year, self.faults, self.running = year, faults, running
        self.slow_seconds, self.log = slow_seconds, log
        self.lock, self.in_flight = threading.Lock(), 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def body(self, path, query):
        """(bytes, content type) behind a path, or None."""
        year = self.year
        if path == "/0/log/":
            data = year.log(query)
            return data and (data, "text/plain")
        if path == f"/sc/raw/scraw{year.year}.zip" and not self.running:
            return year.zip, "application/zip"
        if path == "/sc/raw/list.cgi" and query in ("", "old"):
            return (year.list(query == "old") if self.running else b"list([]);\r\n"), "application/x-javascript"
        if path.startswith("/sc/raw/dat/") and self.running:
            data = year.files.get(path.removeprefix("/sc/raw/dat/"))
            return data and (data, "application/octet-stream")
        return None

    def handle_error(self, request, client_address):
        """Print a traceback, but not because a client went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection, kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *args):
        """Print nothing on stderr, because the request log has everything."""

    def do_GET(self):
        """Answer a request, rightly or with the fault whose turn it is."""
        path, _, query = self.path.partition("?")
        name = query if path == "/0/log/" else path.rpartition("/")[2] + ("?" + query if query else "")
        with self.server.lock:
            self.server.in_flight += 1
            self.note = {"path": self.path, "gid": query if path == "/0/log/" else None, "start": time.monotonic()}
            self.note |= {"ts_start": now(), "in_flight": self.server.in_flight}
            fault = self.server.faults.take(name)
        self.pending = True
        try:
            self.answer(self.server.body(path, query), fault)
        finally:
            self.done("gone")

    def answer(self, found, fault):
        """Send `found`, (bytes, content type) or None, unless there is a fault."""
        if fault == "reset":
            self.done(fault)
            # lingering for 0 seconds makes the kernel send RST in place of FIN
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            os.close(self.connection.detach())
        elif fault == "slow" and select.select([self.connection], [], [], self.server.slow_seconds)[0]:
            self.close_connection = True  # the client has lost patience
            self.done(fault)
        elif fault and fault.isdigit():
            self.send(int(fault), ERROR_PAGE, fault, {"Retry-After": "1"} if fault in ("429", "503") else {})
        elif fault == "empty":
            self.send(200, b"", fault)
        elif fault == "html":
            self.send(200, ERROR_PAGE, fault, {"Content-Type": "text/html"})
        elif not found:
            self.send(404, ERROR_PAGE)
        else:
            self.send_found(*found, fault)

    def send_found(self, data, kind, fault):
        """Send a body, or the range of it that was asked for; for the fault `short`, only half of it."""
        etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        modified = email.utils.format_datetime(datetime(self.server.year.year, 1, 1, tzinfo=timezone.utc), usegmt=True)
        headers = {"Content-Type": kind, "ETag": etag, "Accept-Ranges": "bytes", "Last-Modified": modified}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        status, part = 200, data
        if wanted and self.headers.get("If-Range", etag) == etag:
            start, stop = int(wanted[1]), min(int(wanted[2] or len(data) - 1) + 1, len(data))
            if start >= len(data):
                return self.send(416, b"", fault, {"Content-Range": f"bytes */{len(data)}"})
            status, part = 206, data[start:stop]
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        return self.send(status, part, fault, headers, short=fault == "short")

    def send(self, status, data, fault=None, headers=None, short=False):
        """Send a response. The request counts as done just before its last byte is sent, or the next request of a fast
        client would seem to overlap it.
        """
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if short:
            data = data[: len(data) // 2]
            self.close_connection = True
        if data:
            self.wfile.write(data[:-1])
            self.wfile.flush()
        self.done(fault or status)
        self.wfile.write(data[-1:])
        self.wfile.flush()

    def done(self, status):
        """Log the end of the request, once."""
        if not self.pending:
            return
        self.pending = False
        with self.server.lock:
            self.server.in_flight -= 1
            if self.server.log:
                self.note |= {"status": status, "end": time.monotonic(), "ts_end": now()}
                print(json.dumps(self.note), file=self.server.log, flush=True)


def now():
    """UTC, to the millisecond, as in the manifest."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
