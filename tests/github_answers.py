"""Records as GitHub shows them: the API description's examples with what is ours put in."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tests.github_schema import Json, example
from tests.github_state import (
    ACTIONS,
    DEFAULT_BRANCH,
    WRITERS,
    CheckRun,
    Comment,
    Commit,
    LabelEvent,
    Pull,
    Repository,
    Status,
)

REPOSITORY_ID = 1_296_269
APP_IDS = {"github-actions": 15_368}
#: A larger file is shown without its content.
CONTENT_LIMIT_BYTES = 1024 * 1024
_CONTENT_WIDTH = 60
_BOT_ID = 41_898_282
_EXAMPLE_SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
_BASE_ROLE = {"maintain": "write", "triage": "read"}


class Answers:
    """The objects of one repository, with its own server in every address.

    Args:
        repository: whose records are shown.
        api_url: where the API is, without a slash at the end.
        html_url: where the pages for people are, likewise.
    """

    def __init__(self, repository: Repository, api_url: str, html_url: str) -> None:
        self._repository = repository
        self.api_url, self.html_url = api_url, html_url

    def comment(self, comment: Comment) -> Json:
        """An issue comment."""
        told: Json = self._example(
            "issues/create-comment",
            ("/issues/comments/1", f"/issues/comments/{comment.id}"),
            ("/issues/1347#issuecomment-1", f"/pull/{comment.number}#issuecomment-{comment.id}"),
            ("/issues/1347", f"/issues/{comment.number}"),
        )
        return told | {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "body": comment.body,
            "user": self.user(comment.author),
            "created_at": moment(comment.created_at),
            "updated_at": moment(comment.updated_at),
            "author_association": self._association(comment.author),
            "performed_via_github_app": self._app_of(comment.author),
        }

    def check_run(self, run: CheckRun) -> Json:
        """A check run with the pull requests of this repository that it is on."""
        told: Json = self._example(
            "checks/create",
            ("/check-runs/4", f"/check-runs/{run.id}"),
            ("/runs/4", f"/runs/{run.id}"),
        )
        output = told["output"] | {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": len(run.annotations),
        }
        open_here = [
            pull
            for pull in self._repository.pulls.values()
            if pull.head_sha == run.head_sha and pull.head_repo == self._repository.name
        ]
        return told | {
            "id": run.id,
            "node_id": f"CR_{run.id}",
            "head_sha": run.head_sha,
            "name": run.name,
            "external_id": run.external_id,
            "details_url": run.details_url,
            "status": run.status,
            "conclusion": run.conclusion,
            "started_at": run.started_at,
            "completed_at": run.completed_at,
            "output": output,
            "app": self._app(run.app),
            "pull_requests": [self._minimal(pull) for pull in open_here],
        }

    def status(self, status: Status) -> Json:
        """A commit status."""
        told: Json = self._example("repos/create-commit-status", (_EXAMPLE_SHA, status.sha))
        return told | {
            "id": status.id,
            "node_id": f"SC_{status.id}",
            "state": status.state,
            "context": status.context,
            "description": status.description,
            "target_url": status.target_url,
            "creator": self.user(status.creator),
            "created_at": moment(status.created_at),
            "updated_at": moment(status.created_at),
        }

    def event(self, event: LabelEvent) -> Json:
        """An issue event."""
        [told] = self._example("issues/list-events", ("/events/1", f"/events/{event.id}"))
        shown: Json = told | {
            "id": event.id,
            "node_id": f"LE_{event.id}",
            "actor": self.user(event.actor),
            "event": event.event,
            "commit_id": None,
            "commit_url": None,
            "created_at": moment(event.created_at),
            "label": {"name": event.label, "color": "d93f0b"},
            "performed_via_github_app": self._app_of(event.actor),
        }
        if not event.label:
            del shown["label"]
        return shown

    def commit(self, commit: Commit) -> Json:
        """A commit; what it changes is not told."""
        told: Json = self._example("repos/get-commit", (_EXAMPLE_SHA, commit.sha))
        author = self.user(commit.author) if commit.author else None
        person = {
            "name": commit.author or "Nobody Known",
            "email": f"{commit.author or 'nobody'}@example.org",
            "date": moment(commit.committed_at),
        }
        parent_url = f"{self.api_url}/repos/{self._repository.name}/commits"
        return told | {
            "node_id": f"C_{commit.sha}",
            "commit": told["commit"]
            | {"author": person, "committer": person, "message": commit.message},
            "author": author,
            "committer": author,
            "parents": [{"sha": sha, "url": f"{parent_url}/{sha}"} for sha in commit.parents],
            "stats": {"additions": 0, "deletions": 0, "total": 0},
            "files": [],
        }

    def content(self, ref: str, path: str, text: str) -> Json:
        """A file as the reference that was asked for has it."""
        raw = text.encode()
        shown = len(raw) <= CONTENT_LIMIT_BYTES
        blob = hashlib.sha1(b"blob %d\0%b" % (len(raw), raw), usedforsecurity=False).hexdigest()
        repo_url = f"{self.api_url}/repos/{self._repository.name}"
        html_url = f"{self.html_url}/{self._repository.name}"
        place = f"{quote(ref)}/{quote(path)}"
        links = {
            "self": f"{repo_url}/contents/{quote(path)}?ref={quote(ref, safe='')}",
            "git": f"{repo_url}/git/blobs/{blob}",
            "html": f"{html_url}/blob/{place}",
        }
        return {
            "type": "file",
            "encoding": "base64" if shown else "none",
            "size": len(raw),
            "name": path.rpartition("/")[2],
            "path": path,
            "content": _wrapped(base64.b64encode(raw).decode()) if shown else "",
            "sha": blob,
            "url": links["self"],
            "git_url": links["git"],
            "html_url": links["html"],
            "download_url": f"{html_url}/raw/{place}",
            "_links": links,
        }

    def listed_commit(self, commit: Commit) -> Json:
        """A commit in a list: without its files."""
        told = self.commit(commit)
        return {key: value for key, value in told.items() if key not in {"stats", "files"}}

    def listed_pull(self, pull: Pull) -> Json:
        """A pull request in a list: without its counts."""
        [simple] = json.loads(example("pulls/list"))
        told = self.pull(pull)
        return {key: told[key] for key in simple}

    def pull(self, pull: Pull) -> Json:
        """A pull request."""
        told: Json = self._example(
            "pulls/get", ("/1347", f"/{pull.number}"), (_EXAMPLE_SHA, pull.head_sha)
        )
        nobody = dict.fromkeys(
            ("milestone", "assignee", "merged_by", "auto_merge", "active_lock_reason")
        )
        none: Json = {key: [] for key in ("assignees", "requested_reviewers", "requested_teams")}
        head_owner = pull.head_repo.split("/")[0] if pull.head_repo else pull.author
        closed_at = None if pull.state == "open" else moment(pull.updated_at)
        counted = {
            "comments": len(self._repository.comments_on(pull.number)),
            "commits": len(pull.commits),
        }
        return told | nobody | none | counted | {
            "id": pull.number + REPOSITORY_ID,
            "node_id": f"PR_{pull.number}",
            "number": pull.number,
            "state": pull.state,
            "locked": False,
            "title": pull.title,
            "body": None,
            "user": self.user(pull.author),
            "author_association": self._association(pull.author),
            "labels": [self._label(name) for name in pull.labels],
            "created_at": moment(pull.created_at),
            "updated_at": moment(pull.updated_at),
            "closed_at": closed_at,
            "merged": pull.merged,
            "merged_at": closed_at if pull.merged else None,
            "merge_commit_sha": pull.merge_commit_sha,
            "head": self._side(head_owner, pull.head_ref, pull.head_sha, pull.head_repo),
            "base": self._side(
                self._repository.owner, pull.base_ref, pull.base_sha, self._repository.name
            ),
        }  # fmt: skip

    def permission(self, login: str) -> Json:
        """What a user may do."""
        level = self._repository.users[login]
        ranks = ("pull", "triage", "push", "maintain", "admin")
        rank = ("none", "read", "triage", "write", "maintain", "admin").index(level)
        user = self.user(login) | {
            "role_name": level,
            "permissions": {name: i < rank for i, name in enumerate(ranks)},
        }
        return {"permission": _BASE_ROLE.get(level, level), "role_name": level, "user": user}

    def user(self, login: str) -> Json:
        """A user or a bot."""
        told: Json = json.loads(
            json.dumps(self._example("issues/create-comment")["user"]).replace(
                "octocat", quote(login)
            )
        )
        slug = app_slug(login)
        if slug:
            told |= {"type": "Bot", "html_url": f"{self.html_url}/apps/{slug}"}
        identity = _BOT_ID if login == ACTIONS else zlib.crc32(login.encode())
        return told | {"login": login, "id": identity, "node_id": f"U_{identity}"}

    def _repo(self, name: str) -> Json:
        text = json.dumps(self._example("pulls/get")["base"]["repo"])
        told: Json = json.loads(text.replace(self._repository.name, name))
        own = name == self._repository.name
        return told | {
            "id": REPOSITORY_ID if own else zlib.crc32(name.encode()),
            "node_id": f"R_{name}",
            "name": name.split("/")[1],
            "full_name": name,
            "owner": self.user(name.split("/", maxsplit=1)[0]),
            "fork": not own,
            "default_branch": DEFAULT_BRANCH,
        }

    def _side(self, owner: str, ref: str, sha: str, repo: str | None) -> Json:
        return {
            "label": f"{owner}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self.user(owner),
            "repo": self._repo(repo) if repo else None,
        }

    def _minimal(self, pull: Pull) -> Json:
        """A pull request as a check run shows it."""
        repo = {
            "id": REPOSITORY_ID,
            "url": f"{self.api_url}/repos/{self._repository.name}",
            "name": self._repository.name.split("/")[1],
        }
        return {
            "id": pull.number + REPOSITORY_ID,
            "number": pull.number,
            "url": f"{repo['url']}/pulls/{pull.number}",
            "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": repo},
            "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": repo},
        }

    def _label(self, name: str) -> Json:
        identity = zlib.crc32(name.encode())
        return {
            "id": identity,
            "node_id": f"LA_{identity}",
            "url": f"{self.api_url}/repos/{self._repository.name}/labels/{quote(name)}",
            "name": name,
            "description": "",
            "color": "d93f0b",
            "default": False,
        }

    def _app_of(self, login: str) -> Json | None:
        slug = app_slug(login)
        return self._app(slug) if slug else None

    def _app(self, slug: str) -> Json:
        told: Json = self._example("checks/create", ("/apps/octoapp", f"/apps/{slug}"))["app"]
        identity = APP_IDS.get(slug, zlib.crc32(slug.encode()))
        return told | {"id": identity, "node_id": f"A_{identity}", "slug": slug, "name": slug}

    def _association(self, login: str) -> str:
        if login == self._repository.owner:
            return "OWNER"
        if app_slug(login):
            return "NONE"
        return "COLLABORATOR" if self._repository.users[login] in WRITERS else "CONTRIBUTOR"

    def _example(self, operation_id: str, *changes: tuple[str, str]) -> Any:  # noqa: ANN401 (JSON)
        text = example(operation_id)
        for old, new in (
            *changes,
            ("octocat/Hello-World", self._repository.name),
            ("github/hello-world", self._repository.name),
            ("https://api.github.com", self.api_url),
            ("https://github.com", self.html_url),
        ):
            text = text.replace(old, new)
        return json.loads(text)


def app_slug(login: str) -> str | None:
    """The app that a bot's login belongs to; None for a user."""
    return login.removesuffix("[bot]") if login.endswith("[bot]") else None


def _wrapped(text: str) -> str:
    """Lines of GitHub's width, the last one ended too."""
    starts = range(0, len(text), _CONTENT_WIDTH)
    return "".join(f"{text[start : start + _CONTENT_WIDTH]}\n" for start in starts)


def moment(time: datetime) -> str:
    """A time as GitHub writes it, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
