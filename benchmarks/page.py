"""What the page costs: watchers that read and watchers that never do, a long run at first sight, and the light.

    python benchmarks/page.py [--watchers 200] [--events 10000] [--rounds 3] [--durability full] [--no-browser]

- **Watchers.** One run of so many steps, by turns without anybody and with so many watchers, of whom half never read:
  once driven by the server itself (here), once by `moot run` in a process of its own (elsewhere). The run waits until
  all watchers are there. The process that drives it notes its own clock at the first and at the last step: told are the
  seconds that the processor worked for this process in between (the run, and here the watchers too), and the seconds
  that passed. What watchers hear after the last step is not in it; it is told apart. Then: how much memory the server
  took, and whether clients that hung up in the middle have seen every number.
- **First paint.** A browser opens the run with all its steps: until the diagram is lit and the story is there.
- **Light.** A run whose agent waits for the browser: from the commit of a step until its state glows there.

Needs chromium for the last two. Everything happens in a temporary folder.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import async_playwright

COUNTED = 3
"""How many watchers hang up in the middle, come back, and count every number."""
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
MACHINE = """
import asyncio, time
from dataclasses import dataclass, replace
from pathlib import Path
from moothall import Budget, Final, Machine, On, Replied, State, ask

@dataclass(frozen=True)
class Count:
    most: int
    steps: int = 0
    gate: str = ""

async def clerk(prompt: str) -> str:
    gate, number = prompt.split("|")
    while gate and not Path(gate, number).exists():
        await asyncio.sleep(0.002)
    return "done"

async def runner(prompt: str) -> str:
    gate, number, most = prompt.split("|")
    while number == "0" and not Path(gate, "go").exists():
        await asyncio.sleep(0.01)
    if number in ("0", most):
        Path(gate, number).write_text(f"{time.process_time()} {time.time()}")
    return "done"

def count(data, _):
    return replace(data, steps=data.steps + 1)

def track(name, agent, prompt):
    return Machine(name, data=Count, budget=Budget(calls=1_000_000),
        states=[State(state, enter=ask(agent, prompt)) for state in ("ping", "pong")] + [Final("end")],
        moves=[On("ping", Replied, to="end", when=lambda data, _: data.steps >= data.most),
               On("ping", Replied, to="pong", do=count), On("pong", Replied, to="ping", do=count)])

RACE, LIGHT = track("race", runner, "{gate}|{steps}|{most}"), track("light", clerk, "{gate}|{steps}")
"""


WATCH = """() => {
    window.lit = [];
    const look = () => {
        const now = document.querySelector(".moot .active[data-state]")?.dataset.state;
        if (!now || now === window.last) return;
        window.last = now;
        window.lit.push(Date.now() / 1000);
    };
    const what = {subtree: true, attributes: true, attributeFilter: ["class"]};
    new MutationObserver(look).observe(document.querySelector(".picture-box"), what);
}"""
"""Notes when another state begins to glow."""


class Server:
    """`moot serve` in a folder of its own."""

    def __init__(self, home: Path, durability: str) -> None:
        (home / "race.py").write_text(MACHINE)
        self.home = home
        self.environment = {**os.environ, "MOOTHALL_HOME": str(home), "MOOTHALL_DURABILITY": durability}
        command = [sys.executable, "-m", "moothall", "serve", "--port", "0", "--json", "-q"]
        self.process = subprocess.Popen(command, cwd=home, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        told = json.loads(self.process.stdout.readline())
        self.url, self.token, self.link = told["url"], told["token"], told["link"]
        self.port = int(self.url.rsplit(":", 1)[1])

    def memory(self) -> float:
        """Megabytes that the server has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def worked(self) -> float:
        """Seconds that the processor worked for the server."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        content = b"" if body is None else json.dumps(body).encode()
        writer.write(
            self.head(
                method,
                path,
                f"content-type: application/json\r\ncontent-length: {len(content)}\r\nconnection: close\r\n",
            )
        )
        writer.write(content)
        answer = await reader.read()
        writer.close()
        return json.loads(answer.partition(b"\r\n\r\n")[2])

    def head(self, method: str, path: str, more: str = "") -> bytes:
        host = f"host: 127.0.0.1:{self.port}\r\nauthorization: Bearer {self.token}\r\n"
        return f"{method} {path} HTTP/1.1\r\n{host}{more}\r\n".encode()

    async def start(self, machine: str, run: str, given: dict[str, Any]) -> None:
        begun = {"machine": f"race.py:{machine}", "input": given, "run_id": run}
        assert "run" in (told := await self.ask("POST", "/api/runs", begun)), told

    def start_elsewhere(self, run: str, given: dict[str, Any]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "moothall", "run", "race.py:RACE", json.dumps(given), "--run-id", run, "-q"]
        return subprocess.Popen(command, cwd=self.home, env=self.environment, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


async def exists(path: Path) -> None:
    while not path.exists():  # noqa: ASYNC110, ASYNC240  # another process makes it
        await asyncio.sleep(0.05)


async def is_known(server: Server, run: str) -> None:
    while "summary" not in await server.ask("GET", f"/api/runs/{run}"):  # noqa: ASYNC110  # another process begins it
        await asyncio.sleep(0.1)


async def watch(server: Server, run: str, seen: list[int], *, cut: int = 0) -> None:
    """Read the events of a run to its end; with `cut`, hang up there once and come back behind the last number."""
    place = -1
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**22)
        writer.write(
            server.head("GET", f"/api/runs/{run}/events?after=-1", f"last-event-id: {place}\r\n" if place >= 0 else "")
        )
        async for line in reader:
            if line.startswith(b"id: "):
                place = int(line[4:])
                seen.append(place)
                if cut and place >= cut:
                    break
            elif line.startswith(b"event: over"):
                writer.close()
                return
        writer.close()
        cut = 0


async def drain(server: Server, run: str) -> None:
    """Read the events of a run to its end without looking at them: what a watcher does is not what is measured."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**20)
    writer.write(server.head("GET", f"/api/runs/{run}/events", "connection: close\r\n"))
    while await reader.read(2**18):
        pass
    writer.close()


async def ignore(server: Server, run: str) -> asyncio.StreamWriter:
    """Ask for the events of a run and never read one."""
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**10)
    writer.write(server.head("GET", f"/api/runs/{run}/events"))
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return writer


@dataclass(frozen=True)
class Lap:
    """One run: seconds of the processor and on the clock from its first to its last step, and what was around it."""

    worked: float
    seconds: float
    arriving: float
    """Seconds that the server worked until every watcher was there."""
    after: float
    """Seconds that it worked behind the last step, until every watcher had heard everything."""
    megabytes: float
    is_whole: bool


async def race(server: Server, run: str, *, events: int, watchers: int, elsewhere: bool) -> Lap:
    """A run with watchers."""
    before, gate = server.memory(), server.home / f"gate-{run}"
    gate.mkdir()
    given = {"most": events, "gate": str(gate)}
    driven = server.start_elsewhere(run, given) if elsewhere else await server.start("RACE", run, given)
    await is_known(server, run)
    worked = server.worked()
    lists: list[list[int]] = [[] for _ in range(min(COUNTED, watchers // 2))]
    readers = [asyncio.create_task(watch(server, run, seen, cut=events // 2)) for seen in lists]
    readers += [asyncio.create_task(drain(server, run)) for _ in range(watchers // 2 - len(readers))]
    sleepers = [await ignore(server, run) for _ in range(watchers - len(readers))]
    await asyncio.sleep(2)
    arriving = server.worked() - worked
    (gate / "go").touch()
    await exists(gate / str(events))
    await asyncio.sleep(0.05)
    worked = server.worked()
    await asyncio.gather(*readers)
    if driven is not None:
        driven.wait(60)
    after, took = server.worked() - worked, server.memory() - before
    for sleeper in sleepers:
        sleeper.close()
    first, last = ([float(figure) for figure in (gate / name).read_text().split()] for name in ("0", str(events)))
    whole = all(seen == list(range(len(seen))) and len(seen) > events for seen in lists)
    return Lap(last[0] - first[0], last[1] - first[1], arriving, after, took, whole)


async def paint(server: Server, page: Any, run: str) -> float:
    began = time.perf_counter()
    await page.goto(f"{server.url}/run/{run}")
    await page.wait_for_selector(".moot .active")
    await page.wait_for_selector(".scene")
    return time.perf_counter() - began


async def light(server: Server, page: Any, times: int) -> list[float]:
    """Seconds from the commit of a step until the browser shows its state."""
    gate = server.home / "light"
    gate.mkdir()
    await server.start("LIGHT", "light", {"most": times, "gate": str(gate)})
    await page.goto(f"{server.url}/run/light")
    await page.wait_for_selector(".moot .active")
    await page.evaluate(WATCH)
    for number in range(times):
        (gate / str(number)).touch()
        await page.wait_for_selector(f".moot .active[data-state={'pong' if number % 2 == 0 else 'ping'}]")
        await asyncio.sleep(0.15)
    seen = await page.evaluate("window.lit")
    (gate / str(times)).touch()
    steps = (await server.ask("GET", f"/api/runs/light/steps?start=1&limit={times}"))["steps"]
    return [shown - step["at"] for shown, step in zip(seen, steps, strict=False)]


async def measure_watchers(server: Server, chosen: argparse.Namespace, *, elsewhere: bool) -> None:
    where = "elsewhere" if elsewhere else "here"
    laps: dict[int, list[Lap]] = {0: [], chosen.watchers: []}
    for number in range(chosen.rounds):
        for watchers, done in laps.items():
            run = f"{where}-{watchers}-{number}"
            done.append(await race(server, run, events=chosen.events, watchers=watchers, elsewhere=elsewhere))
    alone, watched = laps[0], laps[chosen.watchers]
    print(f"{chosen.events} events, the run {where}, alone and with {chosen.watchers} watchers:")
    for what, name in (("the processor worked", "worked"), ("passed", "seconds")):
        pair = [[getattr(lap, name) for lap in done] for done in (alone, watched)]
        slower = 100 * (sum(pair[1]) / sum(pair[0]) - 1)
        told = "; ".join(", ".join(f"{figure:.2f}" for figure in figures) for figures in pair)
        print(f"  seconds {what}: {told}: {slower:+.1f} % in all")
    print(f"  the server worked while they came: {statistics.median(lap.arriving for lap in watched):.2f} s", end="")
    print(f"; behind the last step: {statistics.median(lap.after for lap in watched):.2f} s", end="")
    print(f"; memory: {', '.join(f'{lap.megabytes:+.0f}' for lap in watched)} MB", end="")
    print(f"; every number seen: {all(lap.is_whole for lap in watched)}", flush=True)


async def measure(chosen: argparse.Namespace, home: Path) -> None:
    server = Server(home, chosen.durability)
    try:
        await race(server, "warm", events=200, watchers=0, elsewhere=False)
        for elsewhere in (False, True):
            await measure_watchers(server, chosen, elsewhere=elsewhere)
        if chosen.browser:
            await measure_browser(server, chosen)
    finally:
        server.stop()


async def measure_browser(server: Server, chosen: argparse.Namespace) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = await browser.new_page()
        await page.goto(server.link)
        paints = [await paint(server, page, f"here-0-{number % chosen.rounds}") for number in range(5)]
        print(f"first paint of {chosen.events} steps: {', '.join(f'{seconds:.2f} s' for seconds in paints)}")
        lights = sorted(await light(server, page, 60))
        middle, most = 1000 * statistics.median(lights), 1000 * lights[int(0.95 * len(lights))]
        print(f"a state is lit after: median {middle:.0f} ms, p95 {most:.0f} ms ({len(lights)} steps)")
        await browser.close()


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--watchers", type=int, default=200)
    cli.add_argument("--events", type=int, default=10_000)
    cli.add_argument("--rounds", type=int, default=3)
    cli.add_argument("--durability", default="full", help="full, or normal where the disk of the machine is slow")
    cli.add_argument("--no-browser", dest="browser", action="store_false")
    with TemporaryDirectory() as home:
        asyncio.run(measure(cli.parse_args(), Path(home)))


if __name__ == "__main__":
    main()
