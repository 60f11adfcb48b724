"""The scripts through the real ``gh`` client: proxied to the fake host on loopback, nothing leaves the machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import codex_review_common as common
import pytest
from codex_review_common import MARKER, ApiError, github_api, read
from fake_github import BASE, HEAD, FakeGitHub, Rule
from fake_server import serve
from places import SCRIPTS

GH = shutil.which("gh")
pytestmark = pytest.mark.skipif(GH is None, reason="gh is missing: apt-get install gh (or .github/tests/install.sh)")


@pytest.fixture
def real(tmp_path: Path, monkeypatch):
    """The fake host behind a proxy address, and an environment in which the real client finds only it."""
    host = FakeGitHub()
    host.add_pull()
    monkeypatch.setattr(common, "pause", lambda seconds: None)
    with serve(host) as url:
        for name, value in {
            "GH_HOST": "github.localhost",
            "HTTP_PROXY": url,
            "HTTPS_PROXY": url,
            "NO_PROXY": "",
            "GH_CONFIG_DIR": str(tmp_path / "gh"),
            "GH_NO_UPDATE_NOTIFIER": "1",
            "GH_PROMPT_DISABLED": "1",
            "GH_TOKEN": "publish-token",
        }.items():
            monkeypatch.setenv(name, value)
        yield host
    assert not host.unexpected


def test_objects_lists_pages_and_errors(real: FakeGitHub) -> None:
    assert github_api("repos/owner/repo/pulls/7")["number"] == 7
    for number in range(230):
        real.add_review(login="person", body=f"ü {number}")
    reviews = github_api("repos/owner/repo/pulls/7/reviews?per_page=100", paginate=True)
    assert [r["body"] for r in reviews] == [f"ü {n}" for n in range(230)]
    assert reviews[0]["id"] > 2**53
    with pytest.raises(ApiError) as missing:
        github_api("repos/owner/repo/pulls/8")
    assert missing.value.status == 404
    with pytest.raises(ApiError) as denied:
        github_api("repos/owner/repo/actions/runs/1/rerun", method="POST")
    assert denied.value.status == 403


def test_status_comes_from_the_answer_not_from_its_text(real: FakeGitHub) -> None:
    real.rules.append(Rule("GET", "/pulls/7$", status=403, body={"message": "gh: Not Found (HTTP 404)"}))
    with pytest.raises(ApiError) as error:
        github_api("repos/owner/repo/pulls/7")
    assert error.value.status == 403


def test_a_dropped_connection_has_no_status(real: FakeGitHub) -> None:
    real.rules.append(Rule("POST", "/reviews$", times=9, drop=True))
    with pytest.raises(ApiError) as error:
        github_api("repos/owner/repo/pulls/7/reviews", {"event": "COMMENT"})
    assert error.value.status is None


def test_passing_failures_and_rate_limits(real: FakeGitHub) -> None:
    real.rules += [
        Rule("GET", "/pulls/7$", status=502),
        Rule("GET", "/pulls/7$", 1, status=429, headers={"Retry-After": "1"}),
    ]
    assert github_api("repos/owner/repo/pulls/7")["number"] == 7
    assert len(real.log) == 3


def test_archives_arrive_byte_for_byte_after_the_redirect(real: FakeGitHub) -> None:
    artifact = real.add_artifact(5, "codex-target-5-1", "x", bytes(range(256)) * 100 + b"\r\n\r\n")
    body = read(f"repos/owner/repo/actions/artifacts/{artifact['id']}/zip").body
    assert body == artifact["_data"]


def test_the_chosen_token_is_used_and_an_empty_answer_is_none(real: FakeGitHub, monkeypatch) -> None:
    real.add_run(5)
    monkeypatch.setenv("CODEX_REVIEW_RERUN_TOKEN", "rerun-token")
    assert github_api("repos/owner/repo/actions/runs/5/rerun", method="POST", token="rerun-token") is None
    assert real.log[-1]["token"] == "rerun"


def test_routing_and_snapshot(real: FakeGitHub, monkeypatch) -> None:
    from prepare_codex_review import discussion_snapshot
    from rerun_codex_review import route_review

    monkeypatch.setenv("GH_TOKEN", "read-token")
    monkeypatch.setenv("CODEX_REVIEW_RERUN_TOKEN", "rerun-token")
    real.add_thread(7, [{"login": "u", "body": f"r{n}"} for n in range(150)])
    assert len(discussion_snapshot("owner/repo", real.pulls[7])["threads"][0]["comments"]) == 150
    real.add_run(123)
    assert route_review("owner/repo", real.pulls[7]) is True
    assert {r["token"] for r in real.log} == {"read", "rerun"}


def publisher(tmp_path: Path, **changes: str) -> subprocess.Popen:
    path = tmp_path / "review.json"
    path.write_text(json.dumps({"verdict": "pass", "summary": "fine", "findings": []}))
    environment = {
        **os.environ,
        "GH_REPO": "owner/repo",
        "PR_NUMBER": "7",
        "REVIEW_HEAD_SHA": HEAD,
        "REVIEW_BASE_SHA": BASE,
        "REVIEW_BASE_REF": "main",
        "AUTO_APPROVE": "true",
        "GITHUB_RUN_ID": "9",
        "GITHUB_RUN_ATTEMPT": "1",
        **changes,
    }
    command = [sys.executable, "-B", str(SCRIPTS / "publish_codex_review.py"), str(path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_the_publisher_as_a_program(real: FakeGitHub, tmp_path: Path) -> None:
    process = publisher(tmp_path)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "as APPROVE" in output
    assert len(real.standing_approvals()) == 1
    subprocess.run(
        [sys.executable, "-B", str(SCRIPTS / "publish_codex_review.py"), "--revoke"],
        check=True,
        env={**os.environ, "GH_REPO": "owner/repo", "PR_NUMBER": "7"},
        capture_output=True,
    )
    assert not real.standing_approvals() and real.reviews[7][0]["body"].startswith(MARKER)


# E50 and 13.7: stopped at any moment after the approval was sent
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["while posting", "after posting"])
def test_a_stopped_publisher_takes_its_approval_back(
    real: FakeGitHub, tmp_path: Path, number: int, moment: str
) -> None:
    holder: list = []

    def stop(_host: FakeGitHub) -> None:
        holder[0].send_signal(number)
        time.sleep(0.3)

    if moment == "while posting":
        real.rules.append(Rule("POST", "/reviews$", after=stop))
    else:
        real.rules.append(Rule("GET", "/pulls/7$", 3, mutate=stop))
    holder.append(publisher(tmp_path))
    output = holder[0].communicate(timeout=60)[0]
    assert holder[0].returncode == 1, output
    assert [r["state"] for r in real.reviews[7]] == ["DISMISSED"], output
