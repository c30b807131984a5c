"""The order as a workflow of DBOS on its SQLite system database; keys are made of order and step."""

import asyncio

from dbos import DBOS, SetWorkflowID

from orders import world

LONGEST = 1.5
"""It takes a while until it goes on with a workflow: who kills earlier kills it before it has begun."""


@DBOS.step()
async def pay(folder, what):
    world.pay(folder, what)


@DBOS.step()
async def deliver(folder, what):
    world.deliver(folder, what, f"order-{what}")


@DBOS.step()
async def think():
    world.think()


@DBOS.workflow()
async def order(folder):
    history = []
    for step in world.STEPS:
        deed, _, what = step.partition(" ")
        if deed == "pay":
            await pay(folder, what)
        elif deed == "deliver":
            await deliver(folder, what)
        elif deed == "ask":
            while await DBOS.recv_async("go on", timeout_seconds=60) is None:
                pass
        elif deed == "check":
            await asyncio.gather(*(deliver(folder, one) for one in world.CHECKS))
            history += [f"check {one}" for one in world.CHECKS]
            continue
        else:
            await think()
        history.append(step)
    return history


async def work(folder, begun, asked):
    """Begin the order or go on with it, to its end; its history."""
    launch(folder)
    begun()
    if await DBOS.get_workflow_status_async("order") is not None:
        handle = await DBOS.retrieve_workflow_async("order")
    else:
        with SetWorkflowID("order"):
            handle = await DBOS.start_workflow_async(order, folder)
    await DBOS.send_async("order", "yes", "go on", idempotency_key="yes")
    history = await handle.get_result()
    DBOS.destroy(workflow_completion_timeout_sec=0)
    return history


async def prepare(folder, begun, asked):
    """Make the tables: a kill while they are made leaves a database that cannot be opened."""
    launch(folder)
    DBOS.destroy(workflow_completion_timeout_sec=0)


def launch(folder):
    config = {
        "name": "orders",
        "system_database_url": f"sqlite:///{folder}/dbos.sqlite",
        "run_admin_server": False,
        "log_level": "CRITICAL",
        "application_version": "1",
    }
    DBOS(config=config)
    DBOS.launch()
