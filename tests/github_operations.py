"""What each operation of GitHub's API does to a repository, and what GitHub refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

from tests.github_answers import APP_IDS, REPOSITORY_ID, Answers, app_slug, moment
from tests.github_limits import Refused, refuse_over_limits
from tests.github_schema import Json
from tests.github_state import (
    DEFAULT_BRANCH,
    WRITERS,
    CheckRun,
    Comment,
    Pull,
    Repository,
    Status,
)

PER_PAGE, MOST_PER_PAGE = 30, 100
MOST_COMMITS_OF_A_PULL = 250
NOT_FOR_INTEGRATION = "Resource not accessible by integration"

#: What a token must be granted for a write; one of them is enough.
GRANTS: Mapping[str, frozenset[str]] = {
    "issues/create-comment": frozenset({"issues", "pull-requests"}),
    "issues/update-comment": frozenset({"issues", "pull-requests"}),
    "issues/delete-comment": frozenset({"issues", "pull-requests"}),
    "checks/create": frozenset({"checks"}),
    "checks/update": frozenset({"checks"}),
    "repos/create-commit-status": frozenset({"statuses"}),
}

T = TypeVar("T")


@dataclass(frozen=True)
class Actor:
    """Whom a token stands for; grants are those of an app's token."""

    login: str
    grants: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Call:
    """A request that fits the description, but for the limits that it states."""

    operation: str
    path: str
    arguments: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Json
    over_limits: tuple[str, ...]
    actor: Actor


@dataclass(frozen=True)
class Reply:
    """A good answer's body and headers; None is no body."""

    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Operations:
    """The operations on one repository."""

    def __init__(self, repository: Repository, answers: Answers) -> None:
        self._repository, self._answers = repository, answers
        self._by_id: Mapping[str, Callable[[Call], Reply]] = {
            "issues/list-comments": self._list_comments,
            "issues/create-comment": self._create_comment,
            "issues/update-comment": self._update_comment,
            "issues/delete-comment": self._delete_comment,
            "issues/list-events": self._list_events,
            "checks/create": self._create_check_run,
            "checks/update": self._update_check_run,
            "checks/list-for-ref": self._list_check_runs,
            "repos/create-commit-status": self._create_status,
            "repos/get-commit": self._get_commit,
            "repos/get-content": self._get_content,
            "repos/list-pull-requests-associated-with-commit": self._list_pulls_of_commit,
            "repos/get-collaborator-permission-level": self._get_permission,
            "pulls/get": self._get_pull,
            "pulls/list": self._list_pulls,
            "pulls/list-commits": self._list_commits,
        }

    def perform(self, call: Call) -> Reply:
        """Do what is asked.

        Raises:
            Refused: GitHub would not.
        """
        asked = f"{call.arguments['owner']}/{call.arguments['repo']}"
        if asked.casefold() != self._repository.name.casefold():
            raise _not_found()
        self._refuse_unless_granted(call)
        if call.over_limits:
            raise Refused(422, "\n".join(("Invalid request.\n", *call.over_limits)))
        refuse_over_limits(call.body)
        return self._by_id[call.operation](call)

    def _refuse_unless_granted(self, call: Call) -> None:
        granted = GRANTS.get(call.operation)
        if granted is None:
            return
        if app_slug(call.actor.login):
            if not granted & call.actor.grants:
                raise Refused(403, NOT_FOR_INTEGRATION)
        elif "checks" in granted:
            raise Refused(403, "You must authenticate via a GitHub App.")
        elif "statuses" in granted and not self._may_write(call.actor):
            raise _not_found()

    def _may_write(self, actor: Actor) -> bool:
        return bool(actor.grants) or self._repository.users.get(actor.login) in WRITERS

    # Comments and labels

    def _list_comments(self, call: Call) -> Reply:
        number = self._pull(call.arguments["issue_number"]).number
        since = call.query.get("since")
        shown = [
            comment
            for comment in self._repository.comments_on(number)
            if since is None or comment.updated_at >= datetime.fromisoformat(since)
        ]
        page, headers = self._page(call, shown)
        return Reply([self._answers.comment(comment) for comment in page], headers)

    def _create_comment(self, call: Call) -> Reply:
        number = self._pull(call.arguments["issue_number"]).number
        comment = self._repository.add_comment(number, call.actor.login, call.body["body"])
        shown = self._answers.comment(comment)
        return Reply(shown, {"Location": shown["url"]})

    def _update_comment(self, call: Call) -> Reply:
        comment = self._editable_comment(call)
        comment.body, comment.updated_at = call.body["body"], self._repository.tick()
        return Reply(self._answers.comment(comment))

    def _delete_comment(self, call: Call) -> Reply:
        del self._repository.comments[self._editable_comment(call).id]
        return Reply()

    def _editable_comment(self, call: Call) -> Comment:
        comment = self._repository.comments.get(call.arguments["comment_id"])
        if comment is None:
            raise _not_found()
        if comment.author != call.actor.login and not self._may_write(call.actor):
            raise Refused(403, "Must have admin rights to Repository.")
        return comment

    def _list_events(self, call: Call) -> Reply:
        number = self._pull(call.arguments["issue_number"]).number
        shown = [event for event in self._repository.events if event.number == number]
        page, headers = self._page(call, shown)
        return Reply([self._answers.event(event) for event in page], headers)

    # Checks and statuses

    def _create_check_run(self, call: Call) -> Reply:
        body = call.body
        self._commit(body["head_sha"])
        run = CheckRun(
            id=self._repository.next_id(),
            name=body["name"],
            head_sha=body["head_sha"],
            app=str(app_slug(call.actor.login)),
            started_at=body.get("started_at", moment(self._repository.tick())),
        )
        self._take(run, body)
        self._repository.check_runs[run.id] = run
        shown = self._answers.check_run(run)
        return Reply(shown, {"Location": shown["url"]})

    def _update_check_run(self, call: Call) -> Reply:
        run = self._repository.check_runs.get(call.arguments["check_run_id"])
        if run is None:
            raise _not_found()
        if run.app != app_slug(call.actor.login):
            message = f"Invalid app_id `{APP_IDS.get(run.app)}` - check run can only be modified by"
            raise Refused(403, f"{message} the GitHub App that created it.")
        self._take(run, call.body)
        return Reply(self._answers.check_run(run))

    def _take(self, run: CheckRun, body: Json) -> None:
        """Put into a check run what a request says of it; its annotations join the earlier ones."""
        for key in ("name", "details_url", "external_id", "started_at", "status", "completed_at"):
            setattr(run, key, body.get(key, getattr(run, key)))
        if "conclusion" in body:
            run.status, run.conclusion = "completed", body["conclusion"]
            run.completed_at = body.get("completed_at", moment(self._repository.tick()))
        if run.status != "completed":
            run.conclusion = run.completed_at = None
        elif run.conclusion is None:
            raise Refused(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
        output = body.get("output")
        if output is not None:
            run.title = output.get("title", run.title)
            run.summary, run.text = output["summary"], output.get("text")
            run.annotations += output.get("annotations", [])

    def _list_check_runs(self, call: Call) -> Reply:
        sha = self._commit(call.arguments["ref"])
        wanted, query = {"name": "check_name", "status": "status"}, call.query
        shown = [
            run
            for run in self._repository.check_runs.values()
            if run.head_sha == sha
            and all(query.get(asked, getattr(run, key)) == getattr(run, key)
                    for key, asked in wanted.items())
            and query.get("app_id", APP_IDS.get(run.app)) == APP_IDS.get(run.app)
        ]  # fmt: skip
        if query.get("filter", "latest") == "latest":
            latest = {(run.app, run.name): run.id for run in shown}
            shown = [run for run in shown if run.id == latest[run.app, run.name]]
        page, headers = self._page(call, shown)
        runs = [self._answers.check_run(run) for run in page]
        return Reply({"total_count": len(shown), "check_runs": runs}, headers)

    def _create_status(self, call: Call) -> Reply:
        status = Status(
            id=self._repository.next_id(),
            sha=self._commit(call.arguments["sha"]),
            state=call.body["state"],
            context=call.body.get("context", "default"),
            description=call.body.get("description"),
            target_url=call.body.get("target_url"),
            creator=call.actor.login,
            created_at=self._repository.tick(),
        )
        self._repository.statuses.append(status)
        shown = self._answers.status(status)
        return Reply(shown, {"Location": shown["url"]})

    # Pull requests, commits, files and people

    def _get_pull(self, call: Call) -> Reply:
        return Reply(self._answers.pull(self._pull(call.arguments["pull_number"])))

    def _list_pulls(self, call: Call) -> Reply:
        query = call.query
        state, head = query.get("state", "open"), query.get("head", "")
        shown = [
            pull
            for pull in self._repository.pulls.values()
            if state in ("all", pull.state)
            # A head without an owner is ignored.
            and (":" not in head or head == _head_label(pull))
            and query.get("base", pull.base_ref) == pull.base_ref
        ]
        if query.get("direction", "desc") == "desc":
            shown.reverse()
        page, headers = self._page(call, shown)
        return Reply([self._answers.listed_pull(pull) for pull in page], headers)

    def _list_pulls_of_commit(self, call: Call) -> Reply:
        """GitHub finds none from a fork: the commit is on no branch of this repository."""
        sha = self._commit(call.arguments["commit_sha"])
        shown = [
            pull
            for pull in self._repository.pulls.values()
            if sha in pull.commits and pull.head_repo == self._repository.name
        ]
        page, headers = self._page(call, shown)
        return Reply([self._answers.listed_pull(pull) for pull in page], headers)

    def _list_commits(self, call: Call) -> Reply:
        pull = self._pull(call.arguments["pull_number"])
        page, headers = self._page(call, pull.commits[:MOST_COMMITS_OF_A_PULL])
        commits = [self._answers.listed_commit(self._repository.commits[sha]) for sha in page]
        return Reply(commits, headers)

    def _get_commit(self, call: Call) -> Reply:
        sha = self._commit(call.arguments["ref"])
        return Reply(self._answers.commit(self._repository.commits[sha]))

    def _get_content(self, call: Call) -> Reply:
        """A file; GitHub lists a directory, and here it is not found."""
        ref, path = call.query.get("ref", DEFAULT_BRANCH), call.arguments["path"]
        sha = self._named(ref)
        if sha is None:
            raise Refused(404, f"No commit found for the ref {ref}")
        text = self._repository.commits[sha].files.get(path)
        if text is None:
            raise _not_found()
        return Reply(self._answers.content(ref, path, text))

    def _get_permission(self, call: Call) -> Reply:
        if not app_slug(call.actor.login) and not self._may_write(call.actor):
            raise Refused(403, "Must have push access to view collaborator permission.")
        username = call.arguments["username"]
        if app_slug(username):
            raise Refused(404, f"{username} is not a user")
        login = next((one for one in self._repository.users if one.lower() == username.lower()), "")
        if not login:
            raise _not_found()
        return Reply(self._answers.permission(login))

    def _pull(self, number: int) -> Pull:
        pull = self._repository.pulls.get(number)
        if pull is None:
            raise _not_found()
        return pull

    def _commit(self, ref: str) -> str:
        """The SHA of what is named, which there is."""
        sha = self._named(ref)
        if sha is None:
            raise Refused(422, f"No commit found for SHA: {ref}")
        return sha

    def _named(self, ref: str) -> str | None:
        """The SHA of a commit, branch or pull request's merge or head reference, if there is."""
        name = ref.removeprefix("heads/")
        sha = self._repository.branches.get(name, name)
        if ref.startswith("pull/"):
            _, number, side = ref.split("/")
            pull = self._pull(int(number))
            sha = pull.merge_commit_sha if side == "merge" else pull.head_sha
        return sha if sha in self._repository.commits else None

    def _page(self, call: Call, whole: Sequence[T]) -> tuple[Sequence[T], dict[str, str]]:
        """The page that is asked for, and the Link header when there are more."""
        asked = call.query.get("per_page", PER_PAGE)
        per_page = min(asked, MOST_PER_PAGE) if asked > 0 else PER_PAGE
        page = max(call.query.get("page", 1), 1)
        last = max(-(-len(whole) // per_page), 1)
        pages: dict[str, int] = {}
        if page > 1:
            pages |= {"prev": min(page - 1, last)}
        if page < last:
            pages |= {"next": page + 1, "last": last}
        if page > 1:
            pages |= {"first": 1}
        start = (page - 1) * per_page
        links = [f'<{self._address(call, number)}>; rel="{rel}"' for rel, number in pages.items()]
        return whole[start : start + per_page], {"Link": ", ".join(links)} if links else {}

    def _address(self, call: Call, page: int) -> str:
        """GitHub's links name the repository by its number."""
        rest = call.path.split("/", maxsplit=4)[4]
        query = urlencode(dict(call.query) | {"page": page})
        return f"{self._answers.api_url}/repositories/{REPOSITORY_ID}/{rest}?{query}"


def _not_found() -> Refused:
    return Refused(404, "Not Found")


def _head_label(pull: Pull) -> str:
    owner = pull.head_repo.split("/")[0] if pull.head_repo else pull.author
    return f"{owner}:{pull.head_ref}"
