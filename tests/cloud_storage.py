"""A bucket of Google Cloud Storage on this machine."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote

import pytest


class Bucket(ThreadingHTTPServer):
    """The calls of the JSON API that this project needs, for one bucket.

    Attributes:
      name: of the bucket.
      objects: by name.
      status: what requests are answered with instead, if not 0.
    """

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _BucketHandler)
        self.name = name
        self.objects: dict[str, bytes] = {}
        self.status = 0


class _BucketHandler(BaseHTTPRequestHandler):
    server: Bucket

    def do_GET(self) -> None:
        path = rf"/download/storage/v1/b/{self.server.name}/o/([^/?]+)\?alt=media.*"
        name = re.fullmatch(path, self.path)
        content = self.server.objects.get(unquote(name[1])) if name else None
        self._answer(404 if content is None else 200, content or b"")

    def do_POST(self) -> None:
        path = f"/upload/storage/v1/b/{self.server.name}/o?uploadType=multipart"
        assert self.path.startswith(path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        boundary = re.search(r'boundary="?([^"]+)"?', self.headers["Content-Type"])
        assert boundary
        _, metadata, content, _ = body.split(b"--" + boundary[1].encode())
        resource = json.loads(metadata.partition(b"\r\n\r\n")[2])
        if not self.server.status:
            data = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
            self.server.objects[resource["name"]] = data
        self._answer(200, json.dumps(resource).encode())

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(self.server.status or status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def serving(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket that Google's library takes for the real one."""
    server = Bucket(name)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
