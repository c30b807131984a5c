"""What goes on, for tools that watch many programs: spans, counters and a log.

    parts      what a setting names: `spans,counters:9464,log:FILE`
    sights     one entry of a run, with what was under way before and after it: what all of them are fed
    spans      OpenTelemetry: one trace for a run and its children, a span for every effect
    counters   Prometheus: what can be counted and summed, at /metrics on the loopback
    log        a line of JSON for every entry

They watch a hall from aside: in a thread of their own, with a copy of what they see. None can harm a run or hold it up.
What agents, tools and people say is in none of them; ids, names, times and amounts are.
"""
