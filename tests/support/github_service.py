"""GitHub's REST API (2022-11-28), as far as the connector uses it: one private repository, behind TLS."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.support.tls_service import Reply, Request, TlsService, tls_service

TOKEN = "github_pat_canary0d1e5f"
REPO = "octo/app"
HEAD = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
_BASE = "1f0e9d8c7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e"
_HOST = "https://api.github.com"
_NAMED, _NUMBERED = "/repos/octo/app", "/repositories/1"
_ADDRESS = _HOST + _NAMED
_Answer = tuple[int, object]


def _user(login: str) -> dict[str, str]:
    return {"login": login, "type": "User"}


def commit(sha: str, message: str, login: str = "ana") -> dict[str, Any]:
    written = {"message": message, "author": {"name": login}}
    return {"sha": sha, "author": _user(login), "commit": written}


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
        page = f"https://github.com/octo/app/issues/{number}"
        made: dict[str, Any] = {"id": 1000 + number, "number": number, "title": title, "body": body}
        made |= {"state": "open", "state_reason": None, "locked": False, "user": _user("ana")}
        made |= {"labels": [], "updated_at": "2026-11-20T10:00:00Z", "html_url": page}
        self.issues[number] = made | more
        return self.issues[number]

    def comment(self, number: int, body: str, login: str = "ben") -> dict[str, Any]:
        at = f"2026-11-20T10:{len(self.comments):02}:00Z"
        made = {"id": 5_000_000_000 + len(self.comments), "body": body, "user": _user(login)}
        made |= {"created_at": at, "updated_at": at, "issue_url": f"{_ADDRESS}/issues/{number}"}
        made["html_url"] = f"https://github.com/octo/app/issues/{number}#issuecomment"
        self.comments.append(made)
        return made

    @property
    def requests(self) -> list[str]:
        """What reached it, as `METHOD /path?query` below the repository."""
        return [f"{each.method} {each.path.removeprefix(_NAMED)}" for each in self.service.seen]

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
        given: dict[str, Any] = json.loads(request.body or b"{}")
        found = re.fullmatch(rf"(?:{_NAMED}|{_NUMBERED})/?(.*)", unquote(path))
        below = found[1].split("/") if found else ["elsewhere"]
        return self._below(request.method, below, dict(parse_qsl(query)), given)

    def _below(
        self, method: str, path: list[str], query: dict[str, str], given: dict[str, Any]
    ) -> _Answer:
        """Answer what is asked of the repository."""
        match (method, *path):
            case ("GET", ""):
                page = {"html_url": "https://github.com/octo/app", "description": "An app"}
                kind = {"private": True, "visibility": "private", "archived": False}
                return 200, {"full_name": REPO, "default_branch": "main", **kind, **page}
            case ("GET", "issues"):
                wanted = query.get("state", "open")
                found = [self.listed_issue(each) for each in reversed(self.issues.values())]
                found = [each for each in found if wanted in ("all", each["state"])]
                return 200, _paged(found, query)
            case ("POST", "issues"):
                if not given.get("title"):
                    problem = {"resource": "Issue", "field": "title", "code": "missing_field"}
                    return 422, {"message": "Validation Failed", "errors": [problem]}
                labels = [{"name": name} for name in given.pop("labels", [])]
                return 201, self.open_issue(given["title"], given.get("body"), labels=labels)
            case ("GET" | "PATCH", "issues", number) if int(number) in self.issues:
                self.issues[int(number)].update(given)
                return 200, self.listed_issue(self.issues[int(number)])
            case ("GET" | "PATCH", "issues", "comments", number):
                for each in self.comments:
                    if str(each["id"]) == number:
                        each.update(given)
                        return 200, each
            case ("GET", "issues", number, "comments"):
                return 200, _paged(self.comments_of(number), query)
            case ("POST", "issues", number, "comments"):
                return 201, self.comment(int(number), given["body"], "me")
            case ("GET", "pulls", "7"):
                mergeable = self.mergeable.pop(0) if len(self.mergeable) > 1 else self.mergeable[0]
                counts = {"commits": len(self.commits), "changed_files": len(self.files)}
                merged = bool(self.pull.get("merged"))
                return 200, {**self.pull, **counts, "mergeable": None if merged else mergeable}
            case ("GET", "pulls", "7", "commits" | "files" as what):
                return 200, _paged(self.commits if what == "commits" else self.files, query)
            case ("PUT", "pulls", "7", "merge"):
                if given["sha"] != self.pull["head"]["sha"]:
                    return 409, "Head branch was modified. Review and try the merge again."
                self.pull.update(merged=True, state="closed")
                return 200, {"sha": "f" * 40, "merged": True, "message": "Successfully merged"}
            case ("GET", "commits", _, "check-runs"):
                if self.check_runs is None:
                    return 403, "Resource not accessible by personal access token"
                runs = _paged(self.check_runs, query)
                return 200, {"total_count": len(self.check_runs), "check_runs": runs}
            case ("GET", "commits", _, "status"):
                statuses = [{"context": "ci/lint", "state": "success"}]
                return 200, {"state": "success", "total_count": 1, "statuses": statuses}
            case ("GET", "actions", "runs"):
                count = len(self.workflow_runs)
                return 200, {"total_count": count, "workflow_runs": self.workflow_runs}
            case ("GET", "commits", *ref):
                sha = {"main": _BASE, "hotfix": HEAD}.get(ref[0])
                if ref[0] == "tags":
                    sha = self.tags.get("/".join(ref[1:]))
                there = commit(sha, "Count what is left\n\nA longer story.") if sha else None
                return (200, there) if there else (422, f"No commit found for SHA: {ref}")
            case ("GET", "compare", *_):
                return 200, {"total_commits": len(self.commits), "commits": self.commits}
            case ("GET", "releases"):
                return 200, _paged(self.releases[::-1], query)
            case ("GET", "releases", *name):
                for each in self.releases:
                    if name in (["tags", each["tag_name"]], [str(each["id"])]):
                        return 200, each
            case ("POST", "releases"):
                tag = given["tag_name"]
                if tag in self.tags:
                    problem = {"resource": "Release", "code": "already_exists", "field": "tag_name"}
                    return 422, {"message": "Validation Failed", "errors": [problem]}
                made = {"id": 900 + len(self.releases), "draft": False, "prerelease": False}
                page = f"https://github.com/octo/app/releases/tag/{tag}"
                self.releases.append({**made, **given, "html_url": page})
                self.tags[tag] = _BASE
                return 201, self.releases[-1]
            case _:
                pass
        return 404, "Not Found"

    def listed_issue(self, issue: dict[str, Any]) -> dict[str, Any]:
        return {**issue, "comments": len(self.comments_of(issue["number"]))}

    def comments_of(self, number: object) -> list[dict[str, Any]]:
        return [each for each in self.comments if each["issue_url"].endswith(f"/issues/{number}")]


def _paged(items: list[Any], query: dict[str, str]) -> list[Any]:
    size = min(int(query.get("per_page", 30)), 100)
    start = (int(query.get("page", 1)) - 1) * size
    return items[start : start + size]


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
        hub.pull = {"number": 7, "title": "Count what is left", "body": "Fixes #1."}
        hub.pull |= {
            "state": "open",
            "draft": False,
            "merged": False,
            "additions": 3,
            "deletions": 1,
        }
        hub.pull |= {"user": _user("ana"), "base": {"ref": "main", "sha": _BASE}}
        hub.pull["head"] = {"label": "ana:count", "ref": "count", "sha": HEAD}
        hub.pull["html_url"] = "https://github.com/octo/app/pull/7"
        hub.commits = [commit("a" * 40, "Count what is left")]
        hub.commits.append(commit("b" * 40, "Name it\n\nSince nobody knew.", "ben"))
        source = {"filename": "src/count.py", "status": "modified", "additions": 3, "deletions": 1}
        source["patch"] = "@@ -1,2 +1,4 @@\n-left = 1\n+left = 0\n+more = 1\n+less = 2"
        logo = {"filename": "logo.png", "status": "added", "additions": 0, "deletions": 0}
        hub.files = [source, logo]
        failed = {"name": "tests", "status": "completed", "conclusion": "failure"}
        running = {"name": "docs", "status": "in_progress", "conclusion": None}
        hub.check_runs = [{**failed, "app": {"name": "GitHub Actions"}}, running]
        hub.releases = [{"id": 800, "tag_name": "v1.0", "name": "One", "body": "First"}]
        hub.releases[0] |= {"draft": False, "prerelease": False}
        hub.tags = {"v1.0": "c" * 40}
        yield hub
