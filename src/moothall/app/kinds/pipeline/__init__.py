"""The classes of the pipeline, over the machine and the journal of its runs; public as `moothall.pipeline`."""
