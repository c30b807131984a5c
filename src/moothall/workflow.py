"""Workflow files from Python: each execution is a durable run.

machine = WorkflowStateMachine()
machine.load_workflow_configs("workflows")
result = await machine.execute_workflow("coder_reviewer", "make tea")
machine.get_agent("reviewer").get_last_response()
"""

from moothall.app.kinds.workflow.execution import (
    WorkflowAgent,
    WorkflowContext,
    WorkflowStateMachine,
    WorkflowTerms,
)
from moothall.app.kinds.workflow.result import WorkflowResult

__all__ = ["WorkflowAgent", "WorkflowContext", "WorkflowResult", "WorkflowStateMachine", "WorkflowTerms"]
