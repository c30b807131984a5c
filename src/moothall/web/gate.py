"""Who may pass: every request goes through here before any route sees it.

In this order: the Host that was asked for, the Origin that asks, the size of what is sent, the token, how often. A
browser sends the cookie of this server to every port of the machine, so a page of another port is told apart by its
Origin and by what the browser says of the fetch. Nothing here is ever answered with a header that opens it to others.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.exceptions import HTTPException

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST = 1_000_000
"""The most bytes of a body."""
ADDRESSES = 1_000
HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True)
class Person:
    """Who is at the page, and the token that says so."""

    name: str
    token: str


@dataclass(frozen=True, slots=True)
class Pace:
    """How many requests of one person are answered, and how many wrong tokens of one address are looked at.

    Both in the long run and at once; a request that brings no token guesses nothing.
    """

    a_second: float = 50.0
    burst: float = 400.0
    tries_a_second: float = 5.0
    tries: float = 200.0


PACE = Pace()


@dataclass(slots=True)
class Bucket:
    """So much may be taken at once, and so much comes back every second."""

    rate: float
    most: float
    left: float = 0.0
    at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.left = self.most

    def take(self) -> bool:
        """Take one, if one is left."""
        now = time.monotonic()
        self.left, self.at = min(self.most, self.left + (now - self.at) * self.rate), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Gate:
    """An ASGI application around another."""

    def __init__(
        self,
        app: App,
        people: tuple[Person, ...],
        *,
        host: str,
        read_only: bool = False,
        pace: Pace = PACE,
    ) -> None:
        self._app, self._people, self._host, self._read_only = app, people, host.lower(), read_only
        self._pace = pace
        self._asked = {person.token: Bucket(pace.a_second, pace.burst) for person in people}
        self._tries: dict[str, Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._misplaced(scope, headers) or _oversized(headers)
        given = _tokens(scope, headers)
        person = self._person(given)
        if not refusal and person is None:
            refusal = self._unknown(scope, guesses=bool(given))
        if not refusal and person is not None and not self._asked[person.token].take():
            refusal = 429, "too many requests at once; wait a moment"
        if not refusal and self._read_only and scope["method"] not in SAFE and not _only_looks(scope):
            refusal = 403, "this page is read-only; start `moot serve` without --read-only to act"
        if refusal:
            await _refuse(send, *refusal, is_page=_is_navigation(scope, headers))
            return
        assert person is not None
        if opened := _opened_link(scope, person):
            await _redirect(send, opened)
            return
        scope["person"] = person
        await self._app(scope, _limited(receive), _guarded(send))

    def _misplaced(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 403, f"this server does not answer for the host {host[:100]!r}"
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if any(origin.partition("://")[2].lower() != host.lower() for origin in origins):
            return 403, "a page of another origin cannot ask here"
        came_from = headers.get("sec-fetch-site", "none")
        if came_from not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "a page of another origin cannot ask here"
        return None

    def _is_ours(self, host: str) -> bool:
        found = HOST.fullmatch(host.lower())
        name = found["name"].strip("[]") if found else ""
        if name in ("localhost", "127.0.0.1", "::1") or (name and name == self._host):
            return True
        try:
            address, bound = ipaddress.ip_address(name), ipaddress.ip_address(self._host)
        except ValueError:
            return False
        return bound.is_unspecified or address == bound

    def _person(self, given: list[str]) -> Person | None:
        return next((known for known in self._people for token in given if compare_digest(known.token, token)), None)

    def _unknown(self, scope: Scope, *, guesses: bool) -> tuple[int, str]:
        address = str((scope.get("client") or ("?",))[0])
        if len(self._tries) >= ADDRESSES:
            self._tries.clear()
        allowed = Bucket(self._pace.tries_a_second, self._pace.tries)
        if guesses and not self._tries.setdefault(address, allowed).take():
            return 429, "too many wrong tokens; wait a moment"
        return 401, "open the link that `moot serve` printed, or send its token as `Authorization: Bearer`"


def cookie_name(scope: Scope) -> str:
    """The cookie of this server: a browser sends the cookies of all ports."""
    return f"moothall-{(scope.get('server') or ('', 0))[1]}"


def _tokens(scope: Scope, headers: Mapping[str, str]) -> list[str]:
    """Every token that a request brings; ones that are no ASCII are nobody's."""
    found = []
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        found.append(token.strip())
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(scope))
    except CookieError:
        cookie = None
    if cookie is not None:
        found.append(cookie.value)
    if scope["path"] == "/" and scope["method"] == "GET":
        found += parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
    return [token for token in found if token.isascii()]


def _opened_link(scope: Scope, person: Person) -> str:
    """The cookie to set where the link was opened that has the token in it; "" elsewhere."""
    if scope["path"] != "/" or scope["method"] != "GET" or b"token=" not in scope.get("query_string", b""):
        return ""
    return f"{cookie_name(scope)}={person.token}; Path=/; HttpOnly; SameSite=Strict"


def _oversized(headers: Mapping[str, str]) -> tuple[int, str] | None:
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return 400, "Content-Length is not a number"
    return (413, f"what is sent is larger than {LARGEST} bytes") if int(length) > LARGEST else None


def _only_looks(scope: Scope) -> bool:
    """Whether a request changes nothing although it sends something."""
    return str(scope["path"]) == "/api/check"


def _is_navigation(scope: Scope, headers: Mapping[str, str]) -> bool:
    return scope["method"] == "GET" and "text/html" in headers.get("accept", "")


def _limited(receive: Receive) -> Receive:
    """Count what comes in: a body may come without saying how long it is."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST:
            raise HTTPException(413, f"what is sent is larger than {LARGEST} bytes")
        return message

    return counted


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in names)]
        await send(message)

    return guarded


async def _redirect(send: Send, cookie: str) -> None:
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store"), *HEADERS]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, status: int, why: str, *, is_page: bool) -> None:
    body, kind = orjson.dumps({"error": why}), b"application/json"
    if is_page:
        body, kind = _STOPPED.replace("WHY", _plain(why)).encode(), b"text/html; charset=utf-8"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_STOPPED = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Moothall</title></head>'
    "<body><h1>Moothall</h1><p>WHY</p></body></html>"
)
