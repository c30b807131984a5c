"""Whatever is sent to any route, the server answers with a sentence and never fails."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from starlette.testclient import TestClient

from moothall.web.gate import Pace
from tests.web.door import client
from tests.web.test_routes import begin, until

TRIES = 15
HERE = Path(__file__).parent


def answered(page: TestClient, case: Any) -> int:
    """The number that the server answers a case with."""
    body = {} if isinstance(case.body, NotSet) else {"json": case.body}
    query = {name: value for name, value in (case.query or {}).items() if value is not None}
    try:
        return page.request(case.method, case.formatted_path, params=query, **body).status_code
    except (ValueError, TypeError, UnicodeError):  # the client cannot even send it
        return 0


@pytest.mark.slow
@pytest.mark.unreplayed("what strangers send may begin any number of runs")
def test_no_request_of_any_shape_makes_the_server_fail(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    with client(address, pace=Pace(burst=1e9)) as page:
        run = begin(page)
        until(page, run, "waiting")
        page.post(f"/api/runs/{run}/answer", json={"value": True})
        until(page, run, "done")
        description = page.get("/openapi.json").json()
        known_routes: Any = schemathesis.openapi.from_dict(description).get_all_operations()
        operations = [found.ok() for found in known_routes]
        assert len(operations) > 20
        seen: set[int] = set()
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                known = {"run": run} if "{run}" in operation.path else None
                try:
                    cases = operation.as_strategy(mode, path_parameters=known)
                except TypeError:
                    continue

                @settings(
                    max_examples=TRIES,
                    deadline=None,
                    database=None,
                    phases=(Phase.generate,),
                    suppress_health_check=list(HealthCheck),
                )
                @given(cases)
                def answer(case: Any) -> None:
                    number = answered(page, case)
                    seen.add(number)
                    assert number < 500, (case.method, case.formatted_path, case.query, case.body)

                with suppress(Unsatisfiable):  # there is nothing wrong to send to a route that takes nothing
                    answer()
        assert {200, 404, 422} <= seen, seen
