"""Studies of the gate on real hardware, and the documents made from their raw results."""
