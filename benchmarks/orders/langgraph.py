"""The order as a graph of LangGraph, with AsyncSqliteSaver and durability="sync"; keys are made of order and step."""

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from orders import world


class Order(TypedDict, total=False):
    """An order, and what it has appended to its history."""

    folder: str
    what: str
    history: Annotated[list, operator.add]


def node_of(step):
    deed, _, what = step.partition(" ")

    async def node(order):
        if deed == "ask":
            interrupt("Go on?")
        elif deed == "pay":
            world.pay(order["folder"], what)
        elif deed == "deliver":
            world.deliver(order["folder"], what, f"order-{what}")
        else:
            world.think()
        return {"history": [step]}

    return node


async def check(order):
    world.deliver(order["folder"], order["what"], f"order-{order['what']}")
    return {"history": [f"check {order['what']}"]}


def fan_out(order):
    return [Send("check", {"folder": order["folder"], "what": what}) for what in world.CHECKS]


def graph():
    found = StateGraph(Order)
    for step in world.STEPS:
        found.add_node(step, check if step == "check" else node_of(step))
    found.add_edge(START, world.STEPS[0])
    for step, then in zip(world.STEPS, (*world.STEPS[1:], END), strict=True):
        if then == "check":
            found.add_conditional_edges(step, fan_out, ["check"])
        else:
            found.add_edge(step, then)
    return found


async def work(folder, begun, asked):
    """Begin the order or go on with it, to its end; its history."""
    async with AsyncSqliteSaver.from_conn_string(f"{folder}/langgraph.db") as saver:
        await saver.setup()
        app = graph().compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "order"}}
        given = {"folder": folder}
        begun()
        while True:
            state = await app.aget_state(config)
            if world.STEPS[-1] in state.values.get("history", ()):
                return state.values["history"]
            if (
                state.created_at is not None
            ):  # `next` is empty where a kill came between a node's writes and a checkpoint
                given = Command(resume="yes") if state.interrupts else None
            await app.ainvoke(given, config, durability="sync")
