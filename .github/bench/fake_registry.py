"""An image registry on loopback that serves manifests of images the engine already holds; layers never travel.

It lets a locally made image be pulled and pinned by digest with the engine's own client: the manifest names the image
by its id, so the engine finds the contents in its own store.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry:
    """Context manager: a registry server; `offer` makes an image pullable."""

    def __init__(self) -> None:
        self.manifests: dict[tuple[str, str], bytes] = {}
        self.requests: list = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.requests.append(f"{self.command} {self.path}")
                if self.path == "/v2/":
                    self._answer(200, b"{}", "application/json")
                    return
                match = re.fullmatch(r"/v2/(.+)/manifests/(sha256:[0-9a-f]{64})", self.path)
                manifest = registry.manifests.get(match.groups()) if match else None  # type: ignore[arg-type]
                if manifest is None:
                    self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', "application/json")
                else:
                    self._answer(200, manifest, MANIFEST)

            do_HEAD = do_GET

            def _answer(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                if kind == MANIFEST:
                    self.send_header("Docker-Content-Digest", digest(body))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                """Quiet: the request log is `Registry.requests`."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def __enter__(self) -> Registry:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    def offer(self, name: str, image_id: str) -> str:
        """The pinned reference, HOST:PORT/NAME@sha256:DIGEST, under which the engine can pull its own image."""
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {
                    "mediaType": "application/vnd.docker.container.image.v1+json",
                    "size": 1,
                    "digest": image_id,
                },
                "layers": [],
            }
        ).encode()
        self.manifests[name, digest(manifest)] = manifest
        return f"localhost:{self.server.server_address[1]}/{name}@{digest(manifest)}"


def digest(data: bytes) -> str:
    """Digest of a blob as registries write it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
