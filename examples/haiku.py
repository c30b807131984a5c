"""The built-in pipeline from Python: a check of one's own, somebody who watches, and the figures at the end."""

from pathlib import Path

from moothall.pipeline import (DEFAULT_CHECKS, AgentConfig, AgentOrchestrator, Draft, JobConfig,
                               StateTransition)


def has_a_few_steps(draft: Draft) -> bool | str:
    steps = len(draft.plan.steps)
    return 2 <= steps <= 5 or f"{steps} step is too little; give two to five that somebody could follow"


class Printer:
    def on_state_transition(self, transition: StateTransition) -> None:
        print(f"{transition.from_state} → {transition.to_state}", f"({transition.reason})" if transition.reason else "")

    def on_metrics_update(self, metrics: dict[str, object]) -> None:
        pass


if __name__ == "__main__":
    orchestrator = AgentOrchestrator(JobConfig(
        agent=AgentConfig(max_iterations=4, token_budget=10_000),
        checks={**DEFAULT_CHECKS, "steps": has_a_few_steps},
        model=f"scripted:{Path(__file__).with_name('haiku.json')}",
    ))
    orchestrator.add_observer(Printer())
    result = orchestrator.run("A haiku about the tide", inputs={"language": "English"})
    print(result.implementation)
    print(orchestrator.state_machine.format_metrics_report())
