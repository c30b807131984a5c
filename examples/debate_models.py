"""A debate of three models, each behind an address that speaks OpenAI's protocol.

The server here is a tiny one of our own on this machine, so that the example runs anywhere. With Ollama, vLLM or
llama.cpp only the address changes: `{"model": "openai:qwen3:8b@http://127.0.0.1:11434/v1"}`.
"""

import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from moothall.debate import AgentConfig, run_debate

VIEWS = {
    "big-one": ("A server: sales are money.", "no"),
    "fast-one": ("A file: nobody waits for a network.", "yes"),
    "old-one": ("A file: I have seen servers go.", "yes"),
}
ASKED: set[str] = set()


class Models(BaseHTTPRequestHandler):
    """Answers as each of the three models would."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ASKED.add(asked["model"])
        message = {"role": "assistant", "content": json.dumps(reply(asked["model"], json.dumps(asked["messages"])))}
        body = json.dumps(
            {
                "id": "reply",
                "object": "chat.completion",
                "created": 1,
                "model": asked["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 80, "completion_tokens": 20, "total_tokens": 100},
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *told: object) -> None:
        """Say nothing about requests."""


def reply(model: str, asked: str) -> dict[str, object]:
    """What a model says to a prompt."""
    text, answer = VIEWS[model]
    if "Write one review" in asked:
        return {"reviews": [{"label": "A", "text": "Say how it is backed up."}]}
    if "You are not on the panel" in asked:
        return {"confidence": 85, "reason": "most of them agree"}
    if "Write the solution" in asked:
        return {"description": "One file, copied every night.", "confidence": 80}
    return {"text": text, "answer": answer, "confidence": 70}


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    seats = [AgentConfig(name, model=f"openai:{name}@{address}") for name in VIEWS]
    judge = AgentConfig("judge", role="judge", model=f"openai:big-one@{address}")
    answer = {"type": "choice", "options": ["yes", "no"]}
    with tempfile.TemporaryDirectory() as folder:
        result = run_debate(
            "Is one file enough for the sales of a shop?",
            agents=seats,
            judge=judge,
            config={"answer": answer, "protocol": "debate", "rounds": 1},
            store=f"sqlite:{Path(folder) / 'runs.db'}",
        )
    server.shutdown()
    print(f"three models were asked: {', '.join(sorted(ASKED))}")
    print(f"{result.plain['solution']['answer']}, votes {result.plain['votes']['counts']}")
    sys.exit(0 if result.status == "done" else 1)


if __name__ == "__main__":
    main()
