"""Whether a result is of the commit that it is posted for; the file alone is nobody's word."""

from __future__ import annotations

from sns_gate.errors import PostDenied, UsageError
from sns_gate.github.client import Api
from sns_gate.github.event import Target, is_commit
from sns_gate.types import GateResult


def require_bound(result: GateResult, target: Target, api: Api) -> None:
    """Refuse a result that some other check left: an earlier one, or one that lay in the tree.

    Args:
        result: to post.
        target: its commit, and what the run itself checked out.
        api: of the target's repository, which knows what GitHub merged the commit into.

    Raises:
        UsageError: the result is of another commit.
        PostError: GitHub does not say.
    """
    commit = result.candidate.commit or ""
    if commit and (commit in (target.sha, target.checkout) or _merges(commit, target.sha, api)):
        return
    judged = f"commit {commit[:9]}" if is_commit(commit) else "no commit"
    raise UsageError(
        f"the result is of {judged}, and this run of {target.sha[:9]}, so it says nothing of it "
        f"and nothing was posted; post what this run's own check wrote, of the commit that it "
        f"checked out"
    )


def _merges(commit: str, head: str, api: Api) -> bool:
    """Whether a commit merges a pull request's head into its base, as GitHub makes them."""
    if not is_commit(commit):
        return False
    try:
        parents = [str(parent["sha"]) for parent in api.get(f"/commits/{commit}")["parents"]]
    except PostDenied as error:
        if error.status in (404, 422):  # there is no such commit
            return False
        raise
    return head in parents[1:]
