"""The fake GitHub's end of the wire: it carries requests in, and answers or worse out."""

from __future__ import annotations

import contextlib
import select
import socket
import socketserver
import struct
import sys
import traceback
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from tests.github_faults import Answer

_LONGEST_HOLD_S = 30.0


class Answering(Protocol):
    """What decides the answers."""

    def answer(self, method: str, target: str, headers: Message, raw: bytes) -> Answer:
        """The answer to a request for a path with its query."""

    def note(self, problem: str) -> None:
        """Something went wrong that no test asked for."""


class Server(ThreadingHTTPServer):
    """A server on a free port, which knows its open connections so that it can end them."""

    daemon_threads = False  # closing waits for them
    request_queue_size = 128  # a full queue costs a client a second

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        """Bind without asking anybody for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (the base's)
        """Serve a connection in a thread of its own."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 (the base's)
        """End a connection."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error; anything else is the fake's own."""
        del request, client_address
        if not isinstance(sys.exception(), ConnectionError):
            self.answering.note(f"the fake failed:\n{traceback.format_exc()}")

    def stop(self) -> None:
        """End every connection and all threads."""
        self.shutdown()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Carries one connection's requests to the fake and its answers back."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def serve(self) -> None:
        """Answer a request of any method."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.answering.answer(self.command, self.path, self.headers, raw)
        match answer.ending:
            case "timeout":
                # Readable is a client that has gone away, or the server's own end.
                select.select([self.connection], [], [], _LONGEST_HOLD_S)
                self.close_connection = True
            case "reset":
                self._reset()
            case "cut short":
                self._send(answer, answer.body[: len(answer.body) // 2])
                self.close_connection = True
            case "whole":
                self._send(answer, answer.body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = serve  # noqa: N815 (http.server's names)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        """Print nothing."""

    def _send(self, answer: Answer, sent: bytes) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != HTTPStatus.NO_CONTENT:
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(sent)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()
        self.connection.close()
        self.close_connection = True
