"""What `import moothall` offers is a promise: a name comes or goes only together with this list."""

import inspect
from importlib import import_module

import pytest

PUBLIC: tuple[str, ...] = (
    "Alarm",
    "All",
    "Answered",
    "Append",
    "AskAgent",
    "AskPerson",
    "Broken",
    "Budget",
    "CancelSend",
    "Cancelled",
    "ChildDone",
    "Completed",
    "Conflict",
    "Conflicted",
    "DefinitionError",
    "Done",
    "Effect",
    "EffectFailed",
    "Event",
    "Exhausted",
    "Expired",
    "Final",
    "FormField",
    "GaveUp",
    "History",
    "In",
    "Machine",
    "Moment",
    "MoothallError",
    "Moothall",
    "Move",
    "On",
    "Outcome",
    "Parallel",
    "ReadRecords",
    "RecordsRead",
    "RecordsWritten",
    "Refused",
    "Replied",
    "Reply",
    "Returned",
    "Send",
    "SharedRecord",
    "State",
    "ToolCall",
    "Unusable",
    "Window",
    "Workspace",
    "WriteRecords",
    "YesNo",
    "always",
    "answer",
    "anywhere",
    "arun",
    "ask",
    "call",
    "child",
    "days",
    "emitting",
    "fork",
    "form",
    "hours",
    "keep_said",
    "minutes",
    "otherwise",
    "question",
    "resume",
    "run",
    "run_process",
    "said_by",
    "tool",
    "turn_of",
    "yes",
)

PIPELINE: tuple[str, ...] = (
    "AgentConfig",
    "AgentOrchestrator",
    "CheckpointManager",
    "DEFAULT_CHECKS",
    "Draft",
    "InvalidTransitionError",
    "JobConfig",
    "MetricsLogger",
    "OrchestrationState",
    "OrchestrationStateMachine",
    "OrchestratorResult",
    "Plan",
    "StateMachineObserver",
    "StateMetrics",
    "StateTransition",
    "Verdict",
)

ARENA: tuple[str, ...] = (
    "ArenaOptions",
    "Case",
    "Configuration",
    "Consensus",
    "Duel",
    "Fitted",
    "IdentityGuard",
    "Locks",
    "Plan",
    "Rating",
    "Task",
    "Violation",
    "Vote",
    "VoteWeight",
    "arena",
    "audit_log",
    "bradley_terry",
    "build_initial_plan",
    "consensus",
    "decision",
    "decode_plan",
    "elo",
    "execute_plan",
    "explain",
    "factor",
    "k_of",
    "reason_of",
    "run_arena",
    "run_debate",
    "static_rules",
    "store_all_in_memory",
    "track_record",
)

TEAM: tuple[str, ...] = (
    "AgentState",
    "Arbitration",
    "ConversationMemory",
    "Directive",
    "FSMOrchestrator",
    "Proposal",
    "StateVisualizer",
    "TransitionEngine",
    "Unusable",
    "arbitrate",
    "directive",
    "sample",
)

WORKFLOW: tuple[str, ...] = (
    "WorkflowAgent",
    "WorkflowContext",
    "WorkflowResult",
    "WorkflowStateMachine",
    "WorkflowTerms",
)

DEBATE: tuple[str, ...] = (
    "AgentConfig",
    "Clarification",
    "DEBATE_EVENTS",
    "DebateConfig",
    "DebateHooks",
    "DebateNode",
    "DebateResult",
    "DebateTerms",
    "NodeContext",
    "NodeResult",
    "NodeType",
    "Solution",
    "StateMachineOrchestrator",
    "TransitionRule",
    "resume",
    "run_debate",
)

TESTING: tuple[str, ...] = ("Fake", "MemoryStore", "TestClock", "Trial", "Walk", "check", "crash_everywhere")

MODULES = {
    "moothall": PUBLIC,
    "moothall.arena": ARENA,
    "moothall.debate": DEBATE,
    "moothall.pipeline": PIPELINE,
    "moothall.team": TEAM,
    "moothall.testing": TESTING,
    "moothall.workflow": WORKFLOW,
}


@pytest.mark.parametrize("module", MODULES)
def test_the_public_names_are_these(module: str) -> None:
    assert sorted(import_module(module).__all__) == sorted(MODULES[module])


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_resolves(module: str) -> None:
    missing = [name for name in MODULES[module] if not hasattr(import_module(module), name)]
    assert not missing


@pytest.mark.parametrize("module", MODULES)
def test_every_public_class_and_function_says_what_it_is(module: str) -> None:
    offered = {name: getattr(import_module(module), name) for name in MODULES[module]}
    silent = [name for name, thing in offered.items() if is_explainable(thing) and not is_explained(thing)]
    assert not silent


def is_explainable(thing: object) -> bool:
    return (inspect.isclass(thing) or inspect.isroutine(thing)) and getattr(thing, "__module__", "") != "builtins"


def is_explained(thing: object) -> bool:
    """A dataclass without a docstring gets its signature as one; that explains nothing."""
    text = thing.__doc__ or ""
    return bool(text.strip()) and not text.startswith(f"{getattr(thing, '__name__', '')}(")
