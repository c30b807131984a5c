"""A server that is told to stop stops, whoever hangs on."""

import socket
from pathlib import Path

import pytest

from tests.web.browser import Server

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed("there is no run")]


def test_a_client_that_never_ends_its_request_is_cut_off_without_a_word(tmp_path: Path) -> None:
    server = Server(tmp_path / "home")
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        head = f"POST /api/check HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nauthorization: Bearer {server.token}\r\n"
        client.sendall(f"{head}content-type: application/json\r\ncontent-length: 10\r\n\r\n{{".encode())
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.sendall(b"GET /api/me HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 401"), "the first request is under way by now"
        assert server.stop() == 0
    complaints = server.complaints.read_text()
    assert "Traceback" not in complaints
    assert "ERROR" not in complaints
