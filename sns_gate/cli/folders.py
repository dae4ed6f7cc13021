"""Which folder a command without a revision works on."""

from __future__ import annotations

from pathlib import Path


def project_root() -> Path:
    """Where the configuration stands: the repository's root, outside of one the folder itself."""
    from sns_gate.errors import RevisionError
    from sns_gate.revisions import root_and_branch

    try:
        return root_and_branch(Path.cwd())[0]
    except RevisionError:
        return Path.cwd()
