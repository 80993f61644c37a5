"""GitHub's REST API (2022-11-28), as far as the connector uses it: one private repository, behind TLS."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

from tests.support.tls_service import Reply, Request, TlsService, tls_service

TOKEN = "github_pat_canary0d1e5f"
REPO = "octo/app"
HEAD = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
_BASE = "1f0e9d8c7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e"
_HOST = "https://api.github.com"
_NAMED, _NUMBERED = "/repos/octo/app", "/repositories/1"
_ADDRESS = _HOST + _NAMED
_PAGE = 30
_Answer = tuple[int, object]
_Route = Callable[["GitHub", re.Match[str], dict[str, str], dict[str, Any]], _Answer]


def _user(login: str) -> dict[str, str]:
    return {"login": login, "type": "User"}


def commit(sha: str, message: str, login: str = "ana") -> dict[str, Any]:
    return {
        "sha": sha,
        "author": _user(login),
        "commit": {"message": message, "author": {"name": login}},
    }


@dataclass(slots=True, kw_only=True)
class GitHub:
    """What the repository holds; a test changes it as somebody else would."""

    service: TlsService
    issues: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    comments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    pull: dict[str, Any] = field(default_factory=dict[str, Any])
    commits: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    files: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    check_runs: list[dict[str, Any]] | None = field(default_factory=list[dict[str, Any]])
    """None: the token may not read them."""
    workflow_runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    releases: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tags: dict[str, str] = field(default_factory=dict[str, str])
    mergeable: list[bool | None] = field(default_factory=lambda: [True])
    """What each read of the pull request says next; the last one stays."""
    moved: dict[str, int] = field(default_factory=dict[str, int])
    """By method, the status with which its requests are sent on, as after a change of the name."""

    def open_issue(self, title: str, body: str | None, **more: Any) -> dict[str, Any]:
        number = len(self.issues) + 1
        self.issues[number] = {
            "id": 1000 + number,
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "state_reason": None,
            "locked": False,
            "user": _user("ana"),
            "labels": [],
            "updated_at": "2026-11-20T10:00:00Z",
            "html_url": f"https://github.com/octo/app/issues/{number}",
            **more,
        }
        return self.issues[number]

    def comment(self, number: int, body: str, login: str = "ben") -> dict[str, Any]:
        made = {
            "id": 5_000_000_000 + len(self.comments),
            "body": body,
            "user": _user(login),
            "created_at": f"2026-11-20T10:{len(self.comments):02}:00Z",
            "updated_at": f"2026-11-20T10:{len(self.comments):02}:00Z",
            "issue_url": f"{_ADDRESS}/issues/{number}",
            "html_url": f"https://github.com/octo/app/issues/{number}#issuecomment",
        }
        self.comments.append(made)
        return made

    @property
    def requests(self) -> list[str]:
        """What reached it, as `METHOD /path?query` below the repository."""
        return [
            f"{request.method} {request.path.removeprefix('/repos/octo/app')}"
            for request in self.service.seen
        ]

    @property
    def writes(self) -> list[str]:
        return [each for each in self.requests if not each.startswith("GET ")]

    def answer(self, request: Request) -> Reply:
        if (status := self.moved.get(request.method)) and request.path.startswith(_NAMED):
            there = request.path.replace(_NAMED, _NUMBERED, 1)
            return Reply(status=status, body={}, headers={"Location": _HOST + there})
        status, body = self._answer(request)
        if status >= 400 and isinstance(body, str):
            body = {"message": body, "documentation_url": "https://docs.github.com/rest"}
        return Reply(status=status, body=body)

    def _answer(self, request: Request) -> _Answer:
        if request.headers.get("host") != "api.github.com":
            return 404, "Not Found"
        if not request.headers.get("user-agent"):
            return 403, "Request forbidden by administrative rules."
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, "Bad credentials"
        if request.headers.get("x-github-api-version") != "2022-11-28":
            return 400, "Not a supported version"
        if request.headers.get("accept") != "application/vnd.github+json":
            return 415, "Unsupported 'Accept' header"
        path, _, query = request.path.partition("?")
        given = cast("dict[str, Any]", json.loads(request.body)) if request.body else {}
        for method, pattern, route in _ROUTES:
            found = re.fullmatch(rf"(?:{_NAMED}|{_NUMBERED}){pattern}", unquote(path))
            if found and method == request.method:
                return route(self, found, dict(parse_qsl(query)), given)
        return 404, "Not Found"

    def listed_issue(self, issue: dict[str, Any]) -> dict[str, Any]:
        end = f"/issues/{issue['number']}"
        count = sum(each["issue_url"].endswith(end) for each in self.comments)
        return {**issue, "comments": count}

    def found_commit(self, ref: str) -> dict[str, Any] | None:
        sha = self.tags.get(ref.removeprefix("tags/")) if ref.startswith("tags/") else None
        sha = {"main": _BASE, "hotfix": HEAD}.get(ref, sha)
        return commit(sha, "Count what is left\n\nA longer story.") if sha else None


def _paged(items: list[Any], query: dict[str, str]) -> list[Any]:
    size = min(int(query.get("per_page", _PAGE)), 100)
    start = (int(query.get("page", 1)) - 1) * size
    return items[start : start + size]


def _repository(*_: object) -> _Answer:
    return 200, {
        "full_name": REPO,
        "private": True,
        "visibility": "private",
        "archived": False,
        "description": "An app",
        "default_branch": "main",
        "html_url": "https://github.com/octo/app",
    }


def _issues(hub: GitHub, _: object, query: dict[str, str], __: object) -> _Answer:
    wanted = query.get("state", "open")
    found = [hub.listed_issue(each) for each in reversed(hub.issues.values())]
    return 200, _paged([each for each in found if wanted in ("all", each["state"])], query)


def _open_issue(hub: GitHub, _: object, __: object, given: dict[str, Any]) -> _Answer:
    if not given.get("title"):
        problem = {"resource": "Issue", "field": "title", "code": "missing_field"}
        return 422, {"message": "Validation Failed", "errors": [problem]}
    labels = [{"name": name} for name in given.pop("labels", [])]
    return 201, hub.open_issue(given["title"], given.get("body"), labels=labels)


def _issue(hub: GitHub, found: re.Match[str], _: object, given: dict[str, Any]) -> _Answer:
    issue = hub.issues.get(int(found[1]))
    if issue is None:
        return 404, "Not Found"
    issue.update(given)
    return 200, hub.listed_issue(issue)


def _comments(hub: GitHub, found: re.Match[str], query: dict[str, str], _: object) -> _Answer:
    end = f"/issues/{found[1]}"
    return 200, _paged([each for each in hub.comments if each["issue_url"].endswith(end)], query)


def _add_comment(hub: GitHub, found: re.Match[str], _: object, given: dict[str, Any]) -> _Answer:
    return 201, hub.comment(int(found[1]), given["body"], "me")


def _comment(hub: GitHub, found: re.Match[str], _: object, given: dict[str, Any]) -> _Answer:
    for each in hub.comments:
        if str(each["id"]) == found[1]:
            each.update(given)
            return 200, each
    return 404, "Not Found"


def _pull(hub: GitHub, *_: object) -> _Answer:
    mergeable = hub.mergeable.pop(0) if len(hub.mergeable) > 1 else hub.mergeable[0]
    counts = {"commits": len(hub.commits), "changed_files": len(hub.files)}
    merged = bool(hub.pull.get("merged"))
    return 200, {**hub.pull, **counts, "mergeable": None if merged else mergeable}


def _merge(hub: GitHub, _: object, __: object, given: dict[str, Any]) -> _Answer:
    if given["sha"] != hub.pull["head"]["sha"]:
        return 409, "Head branch was modified. Review and try the merge again."
    hub.pull.update(merged=True, state="closed")
    return 200, {"sha": "f" * 40, "merged": True, "message": "Pull Request successfully merged"}


def _check_runs(hub: GitHub, _: object, query: dict[str, str], __: object) -> _Answer:
    if hub.check_runs is None:
        return 403, "Resource not accessible by personal access token"
    runs = _paged(hub.check_runs, query)
    return 200, {"total_count": len(hub.check_runs), "check_runs": runs}


def _workflow_runs(hub: GitHub, *_: object) -> _Answer:
    return 200, {"total_count": len(hub.workflow_runs), "workflow_runs": hub.workflow_runs}


def _commit_status(*_: object) -> _Answer:
    statuses = [{"context": "ci/lint", "state": "success"}]
    return 200, {"state": "success", "total_count": 1, "statuses": statuses}


def _commit(hub: GitHub, found: re.Match[str], *_: object) -> _Answer:
    there = hub.found_commit(found[1])
    return (200, there) if there else (422, f"No commit found for SHA: {found[1]}")


def _compare(hub: GitHub, *_: object) -> _Answer:
    return 200, {"total_commits": len(hub.commits), "commits": hub.commits}


def _releases(hub: GitHub, _: object, query: dict[str, str], __: object) -> _Answer:
    return 200, _paged(list(reversed(hub.releases)), query)


def _release(hub: GitHub, found: re.Match[str], *_: object) -> _Answer:
    for each in hub.releases:
        if found[1] in (f"tags/{each['tag_name']}", str(each["id"])):
            return 200, each
    return 404, "Not Found"


def _create_release(hub: GitHub, _: object, __: object, given: dict[str, Any]) -> _Answer:
    tag = given["tag_name"]
    if tag in hub.tags:
        errors = [{"resource": "Release", "code": "already_exists", "field": "tag_name"}]
        return 422, {"message": "Validation Failed", "errors": errors}
    made = {"id": 900 + len(hub.releases), "draft": False, "prerelease": False, **given}
    made["html_url"] = f"https://github.com/octo/app/releases/tag/{tag}"
    hub.releases.append(made)
    hub.tags[tag] = _BASE
    return 201, made


_ROUTES: tuple[tuple[str, str, _Route], ...] = (
    ("GET", "", _repository),
    ("GET", "/issues", _issues),
    ("POST", "/issues", _open_issue),
    ("GET", r"/issues/(\d+)", _issue),
    ("PATCH", r"/issues/(\d+)", _issue),
    ("GET", r"/issues/(\d+)/comments", _comments),
    ("POST", r"/issues/(\d+)/comments", _add_comment),
    ("GET", r"/issues/comments/(\d+)", _comment),
    ("PATCH", r"/issues/comments/(\d+)", _comment),
    ("GET", "/pulls/7", _pull),
    ("GET", "/pulls/7/commits", lambda hub, _, query, __: (200, _paged(hub.commits, query))),
    ("GET", "/pulls/7/files", lambda hub, _, query, __: (200, _paged(hub.files, query))),
    ("PUT", "/pulls/7/merge", _merge),
    ("GET", r"/commits/[0-9a-f]{40}/check-runs", _check_runs),
    ("GET", r"/commits/[0-9a-f]{40}/status", _commit_status),
    ("GET", "/actions/runs", _workflow_runs),
    ("GET", r"/commits/([\w./-]+)", _commit),
    ("GET", r"/compare/.+", _compare),
    ("GET", "/releases", _releases),
    ("GET", r"/releases/([\w./-]+)", _release),
    ("POST", "/releases", _create_release),
)


@contextmanager
def github_service(folder: Path) -> Iterator[GitHub]:
    """Run it with an issue that has 12 comments, a pull request of two commits, and a release."""
    with tls_service(folder, "api.github.com") as service:
        hub = GitHub(service=service)
        service.answer = hub.answer
        hub.open_issue("It counts wrong", "By one.", labels=[{"name": "bug"}])
        hub.open_issue("Second thoughts", None, pull_request={"url": f"{_ADDRESS}/pulls/2"})
        for number in range(12):
            hub.comment(1, f"Thought {number}\nana, 2026-11-20T10:00:00Z:\nsecond line")
        hub.pull = {
            "number": 7,
            "title": "Count what is left",
            "body": "Fixes #1.",
            "state": "open",
            "draft": False,
            "merged": False,
            "user": _user("ana"),
            "base": {"ref": "main", "sha": _BASE},
            "head": {"label": "ana:count", "ref": "count", "sha": HEAD},
            "additions": 3,
            "deletions": 1,
            "html_url": "https://github.com/octo/app/pull/7",
        }
        hub.commits = [
            commit("a" * 40, "Count what is left"),
            commit("b" * 40, "Name it\n\nSince nobody knew.", "ben"),
        ]
        hub.files = [
            {"filename": "src/count.py", "status": "modified", "additions": 3, "deletions": 1}
            | {"patch": "@@ -1,2 +1,4 @@\n-left = 1\n+left = 0\n+more = 1\n+less = 2"},
            {"filename": "logo.png", "status": "added", "additions": 0, "deletions": 0},
        ]
        hub.check_runs = [
            {"name": "tests", "status": "completed", "conclusion": "failure"}
            | {"app": {"name": "GitHub Actions"}},
            {"name": "docs", "status": "in_progress", "conclusion": None},
        ]
        hub.releases = [{"id": 800, "tag_name": "v1.0", "name": "One", "body": "First"}]
        hub.releases[0] |= {"draft": False, "prerelease": False}
        hub.tags = {"v1.0": "c" * 40}
        yield hub
