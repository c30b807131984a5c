"""The page in this process: a client that comes through the gate like a browser does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from moothall import Moothall
from moothall.web.gate import PACE, Pace, Person
from moothall.web.server import Held, application

ADA, BOB = Person("ada", "a" * 43), Person("bob", "b" * 43)
ADDRESS = "http://127.0.0.1:8484"


def app(store: str, *, read_only: bool = False, pace: Pace = PACE) -> Held:
    return application(Moothall(store, listeners=()), (ADA, BOB), read_only=read_only, pace=pace)


@contextmanager
def client(
    store: str, *, person: Person | None = ADA, read_only: bool = False, pace: Pace = PACE
) -> Iterator[TestClient]:
    headers = {"authorization": f"Bearer {person.token}"} if person is not None else {}
    with TestClient(app(store, read_only=read_only, pace=pace), base_url=ADDRESS, headers=headers) as found:
        yield found


def routes(found: TestClient) -> Iterator[tuple[str, str, Any]]:
    """Every route of the OpenAPI description, with a path that fits its parameters and a body where it takes one."""
    described = found.get("/openapi.json", headers={"authorization": f"Bearer {ADA.token}"}).json()
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            filled = path.replace("{run}", "some-run").replace("{seq}", "0")
            yield method.upper(), filled, {} if "requestBody" in route else None
