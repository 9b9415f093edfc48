"""Shows a run to other processes and to browsers, and takes their orders: a server that costs nothing until somebody connects."""
