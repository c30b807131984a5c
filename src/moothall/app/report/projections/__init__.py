"""What can be read out of a journal: folds over its entries. Pure: no store, no clock.

    Metrics      visits and time of each state, transitions, costs: `metrics = metrics.after(entry)`, entry by entry
    Costs        what was spent, by state, by agent and by model (part of the metrics)
    Flight       what is under way, and what the latest entry ended: the timeline, one piece at a time
    transcript   who said what to whom in one entry

A fold is a value that holds sums and what is under way, never the entries it has seen, so that it can look at a
journal of any length in one pass, and at a run as it goes on.
"""
