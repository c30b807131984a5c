"""Nobody passes without a token, from another host or from another origin; what is sent and how often is bounded."""

import pytest
from starlette.testclient import TestClient

from moothall.web.gate import LARGEST, Gate, Pace, Receive, Scope, Send
from tests.web.door import ADA, ADDRESS, BOB, app, client, routes

OTHERS = ["/", "/inbox", "/run/x", "/static/main.js", "/static/vendor/none.js", "/openapi.json", "/nowhere", "/docs"]


def every_route(found: TestClient) -> list[tuple[str, str, object]]:
    return [*routes(found), *(("GET", path, None) for path in OTHERS)]


def test_every_route_refuses_a_request_without_a_token(address: str) -> None:
    with client(address, person=None) as found:
        known = every_route(found)
        assert len(known) > 25
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "moothall-8484=wrong"}):
            answers = {
                path: found.request(method, path, json=body, headers=headers).status_code
                for method, path, body in known
            }
            assert set(answers.values()) == {401}, answers


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8484"},
        {"host": "evil.example@127.0.0.1:8484"},
        {"host": ""},
        {"host": "["},
        {"host": "[::1"},
        {"host": "127.0.0.1:port"},
        {"origin": "http://["},
        {"origin": ""},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
    ],
)
def test_every_route_refuses_another_host_or_origin(address: str, headers: dict[str, str]) -> None:
    with client(address) as found:
        for method, path, body in every_route(found):
            assert found.request(method, path, json=body, headers=headers).status_code == 403, path


def test_a_second_origin_does_not_hide_the_first(address: str) -> None:
    with client(address) as found:
        both = [("origin", "http://evil.example"), ("origin", ADDRESS)]
        assert found.get("/api/me", headers=both).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8484", "localhost:8484", "localhost:9000", "[::1]:8484", "127.0.0.1"])
def test_this_machine_is_asked_by_any_of_its_names(address: str, host: str) -> None:
    with client(address) as found:
        answer = found.get("/api/me", headers={"host": host, "origin": f"http://{host}"})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("bound", "host", "passes"),
    [
        ("0.0.0.0", "192.168.1.7:8484", True),
        ("0.0.0.0", "evil.example:8484", False),
        ("192.168.1.7", "192.168.1.7:8484", True),
        ("192.168.1.7", "192.168.1.8:8484", False),
        ("box.example", "box.example:8484", True),
    ],
)
def test_a_server_for_others_answers_for_its_own_address_only(bound: str, host: str, passes: bool) -> None:
    async def nobody(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    gate = Gate(nobody, (ADA,), host=bound)
    asked = {"authorization": f"Bearer {ADA.token}", "host": host}
    assert TestClient(gate).get("/", headers=asked).status_code == (204 if passes else 403)


def test_a_link_that_is_opened_becomes_a_cookie_that_scripts_cannot_read(address: str) -> None:
    with client(address, person=None) as found:
        opened = found.get(f"/?token={ADA.token}", follow_redirects=False)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert found.get("/api/me").json()["name"] == "ada"
        assert found.get(f"/api/me?token={BOB.token}", headers={"cookie": "x=y"}).status_code == 401


def test_nothing_is_opened_to_other_origins_and_no_inline_script_may_run(address: str) -> None:
    with client(address) as found:
        for path in ("/", "/api/me", "/static/main.js", "/nowhere"):
            headers = found.get(path, headers={"origin": ADDRESS}).headers
            assert not [name for name in headers if name.startswith("access-control-")]
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
        assert found.options("/api/runs", headers={"origin": "http://evil.example"}).status_code == 403


def test_a_body_has_a_largest_size_also_where_it_does_not_say_its_own(address: str) -> None:
    def pieces() -> object:
        yield from (b" " * 100_000 for _ in range(LARGEST // 100_000 + 1))

    with client(address) as found:
        large = b'{"text": "' + b"x" * LARGEST + b'"}'
        assert found.post("/api/check", content=large).status_code == 413
        answer = found.post("/api/check", content=pieces(), headers={"content-type": "application/json"})  # type: ignore[arg-type]
        assert answer.status_code == 413


def test_who_asks_too_often_is_told_to_wait(address: str) -> None:
    with client(address, pace=Pace(a_second=0.0, burst=5.0)) as found:
        assert [found.get("/nowhere").status_code for _ in range(6)] == [404] * 5 + [429]
        assert found.get("/api/me", headers={"authorization": f"Bearer {BOB.token}"}).status_code == 200


def test_tokens_cannot_be_guessed_at_speed(address: str) -> None:
    with client(address, person=None, pace=Pace(tries_a_second=0.0, tries=3.0)) as found:
        answers = [found.get("/api/me", headers={"authorization": f"Bearer {n}"}).status_code for n in range(4)]
        assert answers == [401, 401, 401, 429]
        assert found.get("/api/me").status_code == 401, "without a token nothing is guessed"
        assert found.get("/api/me", headers={"authorization": f"Bearer {ADA.token}"}).status_code == 200


def test_a_page_that_only_reads_changes_nothing(address: str) -> None:
    with client(address, read_only=True) as found:
        for method, path, body in routes(found):
            expected = {403} if method == "POST" and path != "/api/check" else {200, 404, 409, 422}
            assert found.request(method, path, json=body).status_code in expected, path
        assert found.get("/api/me").json()["read_only"]


def test_only_the_files_of_the_page_are_served(address: str) -> None:
    with client(address) as found:
        assert found.get("/static/main.js").headers["content-type"].startswith("text/javascript")
        for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/index.html"):
            assert found.get(path).status_code == 404, path


def test_the_description_names_every_route_that_answers_json(address: str) -> None:
    held = app(address)
    assert held.hosting.version
    with client(address) as found:
        paths = {path for _, path, _ in routes(found)}
    assert {"/api/runs", "/api/inbox", "/api/check", "/api/metrics", "/api/compare", "/api/form"} <= paths
