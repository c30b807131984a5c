"""Built-in machines: data and pure moves. They meet the runtime in `app`."""
