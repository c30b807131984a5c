"""The synchronous Machine of transitions, for the row that compares pure state machines without any awaiting."""

from peers import transitions as awaiting
from transitions import Machine
from transitions.extensions import HierarchicalMachine

PACKAGES = ["transitions"]
IMPORT = "transitions"


class Model:
    def __init__(self, limit=0):
        self.n, self.limit = 0, limit

    def more(self):
        return self.n < self.limit

    def work(self):
        self.n += 1


async def loop(n, agent, clock):
    model = Model(n)
    moves = [
        {"trigger": "step", "source": "a", "dest": "b", "conditions": "more", "after": "work"},
        {"trigger": "step", "source": "b", "dest": "a", "conditions": "more", "after": "work"},
    ]
    Machine(model, states=["a", "b"], transitions=moves, initial="a", auto_transitions=False)
    with clock:
        for i in range(n):
            await agent(i)
            model.step()
    return model.n


async def nested(n, agent, clock):
    model = Model()
    before = awaiting.HierarchicalAsyncMachine
    awaiting.HierarchicalAsyncMachine = HierarchicalMachine
    try:
        awaiting.tree(50, model)
    finally:
        awaiting.HierarchicalAsyncMachine = before
    with clock:
        for i in range(n):
            await agent(i)
            model.jump()
    return model.n
