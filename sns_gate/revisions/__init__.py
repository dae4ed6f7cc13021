"""Git revisions as folders with importable code: resolved, checked out, built, and removed."""

from sns_gate.revisions.built import build_once
from sns_gate.revisions.checkout import Revision, build, check_out, import_paths
from sns_gate.revisions.files import pack, unpack
from sns_gate.revisions.repository import Repository, root_and_branch
from sns_gate.revisions.scratch import scratch_folder, sweep
from sns_gate.revisions.touched import TrackedFiles
from sns_gate.temporary import is_left_behind

__all__ = [
    "Repository",
    "Revision",
    "TrackedFiles",
    "build",
    "build_once",
    "check_out",
    "import_paths",
    "is_left_behind",
    "pack",
    "root_and_branch",
    "scratch_folder",
    "sweep",
    "unpack",
]
