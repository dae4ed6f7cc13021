"""Spawns workers, speaks with them within time limits, and leaves none behind."""

from sns_gate.workers.environment import Launch, private_package, worker_environment
from sns_gate.workers.left_behind import end_left_behind, nothing_left_in
from sns_gate.workers.pool import WorkerPool
from sns_gate.workers.process import WorkerProcess

__all__ = [
    "Launch",
    "WorkerPool",
    "WorkerProcess",
    "end_left_behind",
    "nothing_left_in",
    "private_package",
    "worker_environment",
]
