"""GitHub's refusals, and the limits on size of which its API description says nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tests.github_schema import Json

DOCUMENTATION_URL = "https://docs.github.com/rest"
COMMENT_LIMIT = 65_536
#: GitHub counts the characters first, and the bytes of what passes (github/docs#35252).
OUTPUT_LIMIT_BYTES = 65_535
DESCRIPTION_LIMIT = 140
ANNOTATION_TITLE_LIMIT = 255
ANNOTATION_MESSAGE_LIMIT_BYTES = 64 * 1024


class Refused(Exception):  # noqa: N818 (GitHub's refusal is an answer, not an error of the fake)
    """GitHub says no, with this status and message."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        error: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or {}
        self.body: Json = {
            "message": message,
            "documentation_url": DOCUMENTATION_URL,
            "status": str(status),
        }
        if error:
            self.body["errors"] = [dict(error)]


def refuse_over_limits(body: Json) -> None:
    """Hold a request's body against the limits that the API description does not state.

    Raises:
        Refused: as GitHub refuses it, with the field and the limit.
    """
    if "body" in body:
        _refuse_comment(body["body"])
    description = body.get("description") or ""
    if len(description) > DESCRIPTION_LIMIT:
        message = f"description is too long (maximum is {DESCRIPTION_LIMIT} characters)"
        raise _invalid("Status", "custom", "description", message)
    output = body.get("output", {})
    for name in ("summary", "text"):
        if len(output.get(name, "").encode()) > OUTPUT_LIMIT_BYTES:
            message = f"{name} exceeds a maximum bytesize of {OUTPUT_LIMIT_BYTES}"
            raise _invalid("CheckRun", "custom", name, message)
    for annotation in output.get("annotations", []):
        if len(annotation.get("title", "")) > ANNOTATION_TITLE_LIMIT:
            message = f"title is too long (maximum is {ANNOTATION_TITLE_LIMIT} characters)"
            raise _invalid("CheckRun", "custom", "annotations", message)
        if len(annotation["message"].encode()) > ANNOTATION_MESSAGE_LIMIT_BYTES:
            message = f"message exceeds a maximum bytesize of {ANNOTATION_MESSAGE_LIMIT_BYTES}"
            raise _invalid("CheckRun", "custom", "annotations", message)


def _refuse_comment(text: str) -> None:
    if not text.strip():
        raise _invalid("IssueComment", "unprocessable", "data", "Body cannot be blank")
    if len(text) > COMMENT_LIMIT:
        message = f"Body is too long (maximum is {COMMENT_LIMIT} characters)"
        raise _invalid("IssueComment", "unprocessable", "data", message)


def _invalid(resource: str, code: str, name: str, message: str) -> Refused:
    error = {"resource": resource, "code": code, "field": name, "message": message}
    return Refused(422, "Validation Failed", error=error)
