"""Telemetry at the command line: by a flag, by the environment, by the settings file; the flag goes first."""

import gzip
import json
import os
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from moothall.app.notify.telemetry.exporter import chosen_exporter
from tests.cli.machines import MACHINES
from tests.cli.ran import Moot


def events(file: str) -> list[tuple[str, str]]:
    return [(one["run"], one["event"]) for one in map(json.loads, Path(file).read_text().splitlines())]


def test_the_flag_goes_before_the_environment_and_that_before_the_file(
    moot: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("home").mkdir()
    Path("home/settings.toml").write_text('telemetry = "log:by-file"')
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "one").code == 0
    monkeypatch.setenv("MOOTHALL_TELEMETRY", "log:by-environment")
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "two").code == 0
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "three", "--telemetry", "log:by-flag").code == 0
    assert moot("run", "machines.py:LETTER", "Ada", "--run-id", "four", "--telemetry", "", "--quiet").code == 0
    found = {file: {run for run, _ in events(file)} for file in ("by-file", "by-environment", "by-flag")}
    assert found == {"by-file": {"one"}, "by-environment": {"two"}, "by-flag": {"three"}}


def test_the_log_goes_to_stderr_and_the_result_alone_to_stdout(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine", "--quiet", "--json", "--telemetry", "log")
    assert ran.json["run"] == "mine"
    assert [json.loads(line)["step"] for line in ran.err.splitlines()] == [0, 1]


def test_who_resumes_or_answers_is_watched_too(moot: Moot) -> None:
    moot("run", "machines.py:SENT", "Ada", "--run-id", "mine")
    assert moot("resume", "mine", "--telemetry", "log:resumed").code == 5
    assert moot("answer", "mine", "--yes", "--telemetry", "log:answered").code == 0
    assert events("resumed") == []
    assert events("answered")[0] == ("mine", "answered")


def test_what_cannot_be_switched_on_is_refused_before_the_run_begins(moot: Moot) -> None:
    ran = moot("run", "machines.py:LETTER", "Ada", "--run-id", "mine", "--telemetry", "smoke")
    assert (ran.code, ran.out) == (4, "")
    assert "telemetry: 'smoke' is not telemetry; write spans, counters:PORT" in ran.err
    assert "Traceback" not in ran.err
    assert moot("show", "mine").code == 1


class Collector(BaseHTTPRequestHandler):
    """Takes spans, and remembers where they were sent."""

    received: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        self.received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *message: object) -> None:
        """Say nothing."""


def test_spans_go_where_the_variables_of_opentelemetry_say(tmp_path: Path) -> None:
    (tmp_path / "machines.py").write_text(MACHINES)
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        environment = {"MOOTHALL_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
        told = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SERVICE_NAME": "letters-of-ada"}
        command = [sys.executable, "-m", "moothall", "run", "machines.py:LETTER", "Ada", "--telemetry", "spans"]
        ran = subprocess.run(command, cwd=tmp_path, env=environment | told, capture_output=True, text=True, check=False)
        server.shutdown()
    assert ran.returncode == 0, ran.stderr
    [(path, body)] = Collector.received
    assert path == "/v1/traces"
    content = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    assert b"letters-of-ada" in content
    assert b"invoke_workflow letter" in content


class Refusal(Collector):
    """Takes no spans."""

    def do_POST(self) -> None:
        self.send_response(401)
        self.end_headers()


@pytest.mark.parametrize(("answers", "level"), [(Collector, "ok"), (Refusal, "warning")])
def test_the_doctor_sends_the_collector_something_and_tells_what_it_says(
    moot: Moot, monkeypatch: pytest.MonkeyPatch, answers: type[Collector], level: str
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("MOOTHALL_TELEMETRY", "spans")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        [check] = [check for check in moot("doctor", "--json").json["checks"] if check["name"] == "telemetry"]
        server.shutdown()
    assert check["level"] == level
    assert (f"{address} takes no spans: " in check["says"], "401" in check["says"]) == (level == "warning",) * 2


def test_the_doctor_names_a_collector_that_is_not_there(moot: Moot, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("MOOTHALL_TELEMETRY", "spans")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    [check] = [check for check in moot("doctor", "--json").json["checks"] if check["name"] == "telemetry"]
    assert check["level"] == "warning"
    assert f"http://127.0.0.1:{port} cannot be reached" in check["says"]


def test_the_doctor_says_that_a_collector_is_named_and_gets_nothing(
    moot: Moot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[str]:
        return [check["says"] for check in moot("doctor", "--json").json["checks"] if check["name"] == "telemetry"]

    assert told() == []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces")
    [said] = told()
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set, and nothing is sent there: set telemetry" in said


@pytest.mark.parametrize(
    ("said", "exporter"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
    ],
)
def test_the_variables_of_opentelemetry_choose_the_exporter(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str], exporter: str
) -> None:
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert chosen_exporter() == exporter
