"""The arena: adversarial debate before anything is executed, a veto that holds, and a way back.

Here stand its pure parts: consensus and decision, ratings, plans, and the static rules that read a plan.
"""
