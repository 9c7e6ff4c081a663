"""A proxy between client and Hub that cuts, spoils and forbids."""

import http.client
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Proxy(ThreadingHTTPServer):
    """Hands requests on to a Hub; `uploads` counts the bytes of each upload that came through.

    Args:
        endpoint: The Hub.
        cut_after: Break the connection in the upload that goes beyond so many bytes of uploads.
        spoil: Change a byte in what is downloaded from paths that match.
        read_only: Refuse what only a token with write permission may do.
    """

    daemon_threads = True

    def __init__(self, endpoint, *, cut_after=None, spoil=None, read_only=False):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(endpoint)
        self.cut_after, self.spoil, self.read_only = cut_after, spoil, read_only
        self.uploads = {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _hand_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        proxy = self.server
        if proxy.read_only and self.command != "GET" and re.search(r"/(preupload|commit|create|tag)\b", self.path):
            return self._answer(403, {}, b'{"error": "Forbidden: this token has no write permission"}')
        if self.command == "PUT":
            if proxy.cut_after is not None and sum(proxy.uploads.values()) + len(body) > proxy.cut_after:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return None
            proxy.uploads[urlsplit(self.path).path] = len(body)
        connection = http.client.HTTPConnection(proxy.upstream.hostname, proxy.upstream.port)
        # The Hub makes its own links of the name that it is called by.
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        connection.request(self.command, self.path, body or None, {**headers, "Connection": "close"})
        answer = connection.getresponse()
        content = answer.read()
        if proxy.spoil and self.command == "GET" and re.search(proxy.spoil, self.path) and content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        return self._answer(answer.status, dict(answer.getheaders()), content)

    def _answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "server", "date", "content-length"):
                self.send_header(name, value)
        length = headers.get("Content-Length", len(content)) if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _hand_on

    def log_message(self, *_):
        pass
