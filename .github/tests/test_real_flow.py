"""The whole life of a pull request with real programs only: gh, codex, git, the container engine, the real images.

The workflow file is played step by step. The hosting API, the model and the image registry are servers on loopback;
between agent and model lies the real way out: internal network, sidecar, egress network, host relay, host proxy.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from codex_review_common import MARKER
from fake_github import BOT, FakeGitHub
from fake_model import Command, Model, Request, login
from fake_registry import Registry
from fake_server import serve
from manage_codex_review_session import LABEL, volume_names
from places import GITHUB
from real_engine import CONTEXT, TOOLS, Engine, need, programs, python_files
from review_container import RUN_LABEL
from test_run_codex_review import Upstream, git
from workflow_runner import Run

PYTHON = {"bin/python3": str(Path(sys.executable).resolve())}
AGENT = Path("/usr/lib/node_modules/@openai/codex")
#: Only downloading is stood in for: what the Dockerfile asks for must be there already.
APT = """#!/bin/sh
[ "$1" = update ] && exit 0
[ "$1" = install ] || exit 9
for package; do
  case "$package" in
    install | -*) ;;
    bubblewrap) bwrap --version ;;
    ca-certificates) ls /etc/ssl/certs/ca-certificates.crt ;;
    git) git --version ;;
    inotify-tools) command -v inotifywait ;;
    *) echo "no package $package" >&2; exit 9 ;;
  esac || exit 9
done
"""
NPM = """#!/bin/sh
[ "$1" = cache ] && exit 0
for package; do :; done
[ "$1 $package" = "install @openai/codex@VERSION" ] || exit 9
ln -s FOLDER/bin/codex.js /bin/codex
"""


def agent_package() -> Path:
    """Folder of the installed agent."""
    found = shutil.which("codex")
    if found is None:
        pytest.skip("codex is missing: npm install -g @openai/codex (or .github/tests/install.sh)")
    return Path(found).resolve().parents[1]


def base_image(engine: Engine) -> str:
    """A base with Node, the agent's package and the packages of the Dockerfile, like one after their download."""
    package = agent_package()
    files = programs([*TOOLS, "node", "git", "bwrap", "inotifywait", "groupadd", "useradd", "bash"])
    for path in package.rglob("*"):
        # Left out for their size; reviews have no voice and run no programs of the model's own.
        if path.is_file() and "voice" not in path.parts and path.name != "codex-code-mode-host":
            files[f"{AGENT}/{path.relative_to(package)}".lstrip("/")] = path
    version = json.loads((package / "package.json").read_text())["version"]
    files.update(
        {
            "usr/bin/env": Path(shutil.which("env") or "").resolve(),
            "etc/ssl/certs/ca-certificates.crt": Path("/etc/ssl/certs/ca-certificates.crt"),
            "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n",
            "etc/group": b"root:x:0:\n",
            "bin/apt-get": APT.encode(),
            "bin/npm": NPM.replace("VERSION", version).replace("FOLDER", str(AGENT)).encode(),
        }
    )
    return engine.load("bench/node", files)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory):
    need(("gh", "gh"), ("bwrap", "bubblewrap"), ("inotifywait", "inotify-tools"), ("node", "nodejs"))
    agent_package()
    with Engine(tmp_path_factory.mktemp("docker")) as engine:
        yield engine


@pytest.fixture(scope="module")
def registry():
    with Registry() as registry:
        yield registry


@pytest.fixture(scope="module")
def images(engine: Engine, registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Pinned references of the three images, built from the real Dockerfiles on local bases."""
    context = tmp_path_factory.mktemp("build") / "codex-review"
    shutil.copytree(CONTEXT, context, ignore=shutil.ignore_patterns("__pycache__"))
    config = (context / "codex-config.toml").read_text()
    settings = Model.settings("http://model.bench/v1", login=True)
    (context / "codex-config.toml").write_text(f'model_provider = "bench"\n{config}\n{settings}')
    node = registry.offer("node", base_image(engine))
    python = registry.offer(
        "python", engine.load("bench/python", {**programs(["sh", "chmod"]), **python_files()}, PYTHON)
    )
    for base in (node, python):
        engine.call("pull", base)
    version = json.loads((agent_package() / "package.json").read_text())["version"]
    built = {}
    for name, suffix, arguments in (
        ("pypto-codex-review", "", {"NODE_IMAGE": node, "CODEX_VERSION": version}),
        ("pypto-codex-proxy", ".proxy", {"NODE_IMAGE": node}),
        ("pypto-codex-relay", ".relay", {"PYTHON_IMAGE": python}),
    ):
        identifier = engine.build(context / f"Dockerfile{suffix}", context, name, **arguments)
        built[name] = registry.offer(name, identifier)
    refused = engine.call(
        "build", "--force-rm", "--build-arg", "NODE_IMAGE=bench/node", "--network", "none", str(context), check=False
    )
    assert refused.returncode and "pinned by digest" in refused.stderr + refused.stdout
    return built


def pull_files(folder: Path, merge_base: str, head: str) -> list:
    """Changed files as the hosting API lists them, made by the real git."""
    files = []
    for line in git(folder, "diff", "--name-status", "--no-renames", merge_base, head).splitlines():
        letter, name = line.split("\t")
        diff = git(folder, "diff", "--no-renames", merge_base, head, "--", name)
        status = {"M": "modified", "A": "added", "D": "removed"}[letter]
        files.append({"filename": name, "status": status, "patch": diff[diff.index("@@") :]})
    return files


class Life:
    """One pull request, the machines around it, and the runs of the workflow."""

    def __init__(self, folder: Path, engine: Engine, images: dict, host: FakeGitHub, url: str, model: Model) -> None:
        self.folder, self.engine, self.host, self.model = folder, engine, host, model
        self.repository = self._repository()
        self.scratch = folder / "runs"
        home = self.scratch / "home" / ".codex-ci"
        home.mkdir(parents=True)
        self.login = login()
        (home / "auth.json").write_text(json.dumps(self.login))
        (home / "auth.json").chmod(0o600)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "DOCKER_HOST": engine.address,
            # The real client reaches only the fake host: it takes it for a proxy.
            "GH_HOST": "github.localhost",
            "GH_CONFIG_DIR": str(folder / "gh"),
            "GH_NO_UPDATE_NOTIFIER": "1",
            "GH_PROMPT_DISABLED": "1",
            "HTTP_PROXY": url,
            "HTTPS_PROXY": url,
            "CODEX_AUTH_FILE": str(home / "auth.json"),
            "CODEX_AUTH_LOCK": str(home / "auth.lock"),
            "CODEX_REVIEW_REMOTE": f"file://{self.repository}",
            "CODEX_REVIEW_IMAGE": images["pypto-codex-review"],
            "CODEX_PROXY_IMAGE": images["pypto-codex-proxy"],
            "CODEX_MODEL": "bench-model",
            "CODEX_REVIEW_DEADLINE": "300",
        }
        self.host.tokens["the-rerun-token"] = self.host.tokens["rerun-token"]
        self.secrets = {"CODEX_REVIEW_RERUN_TOKEN": "the-rerun-token"}
        self.variables = {"CODEX_REVIEW_ENABLED": "true", "CODEX_REVIEW_AUTO_APPROVE": "true"}
        self.seen: list = []
        model.observer = self.look

    def _repository(self) -> Path:
        """The base repository: main with the workflow, a release branch, the contributor's branch."""
        upstream = Upstream(self.folder / "upstream")
        folder = upstream.folder
        self.base = self.workflow = git(folder, "rev-parse", "main")
        git(folder, "branch", "release")
        git(folder, "checkout", "-q", "-b", "feature", upstream.merge_base)
        (folder / "copy.py").write_text("a\npadded\nc\n")
        (folder / "notes.txt").write_text("Rows are padded.\n")
        self.head, self.merge_base = upstream.commit("Pad the rows"), upstream.merge_base
        git(folder, "update-ref", "refs/pull/7/head", self.head)
        git(folder, "checkout", "-q", "main")
        pull = self.host.add_pull(7)
        pull["head"]["sha"], pull["base"]["sha"] = self.head, self.base
        self.host.files[7] = pull_files(folder, self.merge_base, self.head)
        self.host.repository = str(folder)
        return folder

    def run(self, name: str, event: dict, run_id: int, attempt: int = 1) -> Run:
        """Play the workflow for one event and check what must hold after any run."""
        run = Run(
            self.host,
            self.scratch,
            name,
            copy.deepcopy(event),
            variables=self.variables,
            secrets=self.secrets,
            environment=self.environment,
            workflow_sha=self.workflow,
            repository=self.repository,
            run_id=run_id,
            attempt=attempt,
        ).play()
        assert not self.model.failures
        assert self.engine.text("ps", "--all", "--format", "{{.Names}}") == "pypto-codex-proxy-relay", run.log
        networks = self.engine.text("network", "ls", "--filter", "type=custom", "--format", "{{.Name}}")
        assert networks == "pypto-codex-egress", run.log
        assert not list(self.scratch.glob("temp-*/codex-review-*"))
        self.hides_secrets(run.log + run.summary)
        return run

    def pull_event(self, action: str, **more: object) -> dict:
        """The payload of a pull request event for the present state."""
        live = copy.deepcopy(self.host.pulls[7])
        return {"action": action, "number": 7, "sender": {"type": "User"}, "pull_request": live, **more}

    def comment_event(self, body: str) -> dict:
        """The payload of a comment by the author."""
        author = {"login": "contributor", "id": 1001, "type": "User"}
        self.host.issue_comments[7].append({"id": self.host.new_id(), "body": body, "user": author})
        issue = {"number": 7, "pull_request": {"url": "u"}, "user": author}
        return {"action": "created", "issue": issue, "comment": {"body": body, "user": author}, "sender": author}

    def volumes(self) -> dict:
        """Label of each volume of the engine."""
        names = self.engine.text("volume", "ls", "--quiet").split()
        assert names
        return {v["Name"]: (v["Labels"] or {}).get(LABEL) for v in self.engine.json("volume", "inspect", *names)}

    def secret_values(self) -> list:
        """Everything that must stay out of sight."""
        tokens = [name for name in self.host.tokens if name.startswith("job-")]
        return [*tokens, "the-rerun-token", *self.login["tokens"].values()]

    def hides_secrets(self, text: str) -> None:
        """Fail when the text holds a token or a value of the credential."""
        assert not [secret for secret in self.secret_values() if secret in text]

    def look(self, request: Request) -> None:
        """While the model is first asked: what the engine and the kernel say about the running containers."""
        if request.body["input"][-1].get("type") == "function_call_output":
            return
        agent = self.engine.text("ps", "--quiet", "--filter", "name=^codex-agent-")
        sidecar = self.engine.text("ps", "--quiet", "--filter", "name=^codex-proxy-")
        (details, beside) = self.engine.json("container", "inspect", agent, sidecar)
        (name,) = details["NetworkSettings"]["Networks"]
        processes = self.engine.text("top", agent, "-eo", "pid,args").splitlines()[1:]
        environment = b"".join(Path("/proc", line.split()[0], "environ").read_bytes() for line in processes)
        gateway = self.engine.text(
            "network", "inspect", "--format", "{{range .IPAM.Config}}{{.Gateway}}{{end}}", "pypto-codex-egress"
        )
        targets = [["proxy", 7895], [gateway, 17895], ["127.0.0.1", self.model.port], [gateway, self.model.port]]
        self.seen.append(
            {
                "agent": details,
                "sidecar": beside,
                "network": self.engine.json("network", "inspect", name)[0],
                "processes": "\n".join(processes),
                "environment": environment.decode(),
                "namespaces": [os.readlink(f"/proc/{details['State']['Pid']}/ns/{kind}") for kind in KINDS],
                "reached": json.loads(self.engine.text("exec", agent, "node", "-e", REACH, json.dumps(targets))),
                "relays": list(beside["NetworkSettings"]["Networks"]),
            }
        )


KINDS = ("user", "net", "mnt")
#: Run beside the agent, outside its inner sandbox: which of the targets accept a connection?
REACH = """
const net = require("node:net");
const one = ([host, port]) => new Promise((done) => {
  const socket = net.connect({ host, port, timeout: 2000 });
  const end = (reached) => { socket.destroy(); done(reached); };
  socket.on("connect", () => end(true)).on("error", () => end(false)).on("timeout", () => end(false));
});
Promise.all(JSON.parse(process.argv[1]).map(one)).then((all) => console.log(JSON.stringify(all)));
"""
LOOK_AROUND = """
sleep 2
cat /review-diff.patch /review-discussion.json
git log -1 --format='at %H'
for f in /workspace/x /review-diff.patch /tmp/x /codex-state/x /codex-home/sessions/x; do
  if ( : > $f ) 2>/dev/null; then echo "wrote $f"; else echo "denied $f"; fi
done
ls /codex-home
cat /codex-home/auth.json
env
for n in user net mnt; do echo "namespace $(readlink /proc/self/ns/$n)"; done
grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
"""


def finding(title: str, path: str, line: int, side: str, cited: int | None = None) -> dict:
    location = {"path": path, "line": line, "side": side}
    return {"title": title, "body": f"{title}, explained.", "location": location, "existing_comment_id": cited}


@pytest.fixture
def life(tmp_path: Path, engine: Engine, images: dict):
    host = FakeGitHub()
    with serve(host) as url, Model([]) as model:
        command = [str(CONTEXT / "start_relay.sh"), images["pypto-codex-relay"], str(model.port)]
        engine.call("pull", images["pypto-codex-relay"])
        subprocess.run(command, check=True, env=engine.environment, timeout=60)
        for _ in range(150):
            state = engine.text(
                "container", "inspect", "--format", "{{.State.Health.Status}}", "pypto-codex-proxy-relay"
            )
            if state == "healthy":
                break
            time.sleep(0.2)
        yield Life(tmp_path, engine, images, host, url, model)
    assert not host.unexpected


def tool_output(request: Request) -> str:
    """What the agent's last command printed, as the model gets it."""
    outputs = [item["output"] for item in request.body["input"] if item["type"] == "function_call_output"]
    return outputs[-1] if isinstance(outputs[-1], str) else json.dumps(outputs[-1])


def assert_sealed(life: Life) -> None:
    """What engine, kernel and network said about the running containers of a review."""
    seen = life.seen[-1]
    agent, sidecar, network = seen["agent"], seen["sidecar"], seen["network"]
    # No token anywhere: description, environment of every process, command lines; R112 R152 R194.
    life.hides_secrets(json.dumps([agent, sidecar, network]) + seen["environment"] + seen["processes"])
    for name in ("GH_TOKEN", "GITHUB_", "ACTIONS_", "RERUN_TOKEN"):
        assert name not in seen["environment"]
    mounts = {m["Destination"]: (m["Type"], m["RW"]) for m in agent["Mounts"]}
    readonly = ("/workspace", "/review-schema.json", "/review-discussion.json", "/review-diff.patch")
    assert mounts == {
        **dict.fromkeys(readonly, ("bind", False)),
        **dict.fromkeys(("/codex-home/sessions", "/codex-state"), ("volume", True)),
    }
    assert not sidecar["Mounts"]
    for details in (agent, sidecar):
        host = details["HostConfig"]
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["Privileged"]
        assert "no-new-privileges" in host["SecurityOpt"] and details["Config"]["User"] == "1002:1003"
        assert details["Config"]["Labels"][RUN_LABEL] == network["Labels"][RUN_LABEL]
    (profile,) = [o for o in agent["HostConfig"]["SecurityOpt"] if o.startswith("seccomp=")]
    assert json.loads(profile.split("=", 1)[1])["defaultAction"] == "SCMP_ACT_ERRNO"
    # The agent's only network is internal and has one other member, which leads to the relay; R138.
    assert network["Internal"] and len(network["Containers"]) == 2
    assert sorted(seen["relays"]) == sorted([network["Name"], "pypto-codex-egress"])
    assert seen["reached"] == [True, False, False, False]


def assert_kept_inside(output: str, life: Life) -> None:
    """What a command of the model could see and do."""
    assert "-b\n+padded\n" in output and "+Rows are padded." in output and f"at {life.head}" in output
    assert '"title": "Pad the rows"' in output and "wrote" not in output
    assert output.count("denied /") == 5
    assert "auth.json" not in output.replace("/codex-home/auth.json: No such file", "")  # R91
    assert "CapEff:\t0000000000000000" in output and "CapBnd:\t0000000000000000" in output
    assert "NoNewPrivs:\t1" in output and "Seccomp:\t2" in output
    life.hides_secrets(output)
    # Its own namespaces: the inner sandbox works under the system call profile of the container.
    inner = {line.split()[1] for line in output.splitlines() if line.startswith("namespace ")}
    assert len(inner) == 3 and not inner & set(life.seen[-1]["namespaces"])


# R5 R7 R9 R10 R14 R17 R18 R34 R52 R54 R57 R87 R89 R91 R95 R96 R112-R116 R131 R138 R153 R162 R170 R176-R179 R194
def test_a_whole_life_with_the_real_programs(life: Life) -> None:
    host, model, engine = life.host, life.model, life.engine
    epoch = dict.fromkeys(volume_names(host.repository_id, 7), "initial")
    reviewed = dict.fromkeys(("prepare", "review", "publish"), "success")

    # Opened: two findings, one inline, one off the diff with a link.
    found = [finding("Stride", "copy.py", 2, "RIGHT"), finding("Elsewhere", "same.txt", 1, "RIGHT")]
    answer = {"verdict": "findings", "summary": "Read the whole diff.", "findings": found}
    model.script = [Command(LOOK_AROUND), json.dumps(answer)]
    opened = life.pull_event("opened")
    run = life.run("pull_request_target", opened, run_id=1001)
    assert run.ran() == reviewed, run.log
    assert_sealed(life)
    assert_kept_inside(tool_output(model.requests[-1]), life)
    first = model.requests[0]
    assert first.headers["authorization"] == f"Bearer {life.login['tokens']['access_token']}"
    assert first.body["text"]["format"]["schema"] == json.loads((GITHUB / "codex-review-schema.json").read_text())
    assert life.merge_base in json.dumps(first.body["input"]) and life.head in json.dumps(first.body["input"])
    (posted,) = host.reviews[7]
    assert posted["state"] == "COMMENTED" and posted["commit_id"] == life.head and posted["body"].startswith(MARKER)
    assert f"/blob/{life.head}/same.txt#L1" in posted["body"] and life.base in posted["body"]
    (thread,) = host.threads[7]
    (inline,) = host.review_comments[7]
    assert (inline["path"], inline["line"], inline["side"]) == ("copy.py", 2, "RIGHT") and "Stride" in inline["body"]
    assert life.volumes() == epoch

    # The author answers in the thread and asks again: the same run is repeated with the dedicated token.
    host.add_run(1001)
    host.add_thread_comment(7, thread, "contributor", "The width is checked by the caller.")
    thread["isResolved"] = True
    run = life.run("issue_comment", life.comment_event("Please look again.\n\n@pypto-codex review"), run_id=1002)
    assert run.ran() == {"prepare": "success"} and "re-running all jobs of [run 1001]" in run.summary, run.log
    assert [r["token"] for r in host.requests("POST", "/rerun$")] == ["rerun"]
    assert host.runs[1001]["run_attempt"] == 2 and len(host.reviews[7]) == 1

    # The second attempt continues the conversation, knows the answer, and approves.
    asked = len(model.requests)
    passed = {"verdict": "pass", "summary": "The caller checks the width; withdrawn.", "findings": []}
    model.script = [Command("cat /review-discussion.json"), json.dumps(passed)]
    run = life.run("pull_request_target", opened, run_id=1001, attempt=2)
    assert run.ran() == reviewed, run.log
    assert_sealed(life)
    assert "Read the whole diff." in json.dumps(model.requests[asked].body["input"])
    shown = tool_output(model.requests[-1])
    assert "The width is checked by the caller." in shown and "@pypto-codex review" in shown
    assert '"isResolved": true' in shown and str(inline["id"]) in shown
    (approval,) = host.standing_approvals()
    assert approval["state"] == "APPROVED" and approval["commit_id"] == life.head
    assert approval["user"]["login"] == BOT and approval["body"].startswith(MARKER) and life.base in approval["body"]
    assert len(host.reviews[7]) == 2 and len(host.review_comments[7]) == 2 and life.volumes() == epoch
    names = {artifact["name"] for artifact in host.artifacts[1001]}
    assert names == {f"codex-{kind}-1001-{n}" for kind in ("target", "context", "review") for n in (1, 2)}

    # Retargeted: only the workflow's approval falls, nothing is reviewed.
    human = host.add_review(login="maintainer", state="APPROVED", body="fine")
    host.pulls[7]["base"]["ref"] = "release"
    asked = len(model.requests)
    retargeted = life.pull_event("edited", changes={"base": {"ref": {"from": "main"}}})
    run = life.run("pull_request_target", retargeted, run_id=1003)
    assert run.ran() == {"invalidate": "success"}, run.log
    assert approval["state"] == "DISMISSED" and approval["dismissed_by"] == BOT and human["state"] == "APPROVED"
    assert len(model.requests) == asked and len(host.reviews[7]) == 3

    # Closed: the conversation is gone; the login is where it was, unchanged and private.
    host.close(7)
    run = life.run("pull_request_target", life.pull_event("closed"), run_id=1004)
    assert run.ran() == {"cleanup-sessions": "success"} and "\nremoved\n" in run.log, run.log
    assert engine.text("volume", "ls", "--quiet") == ""
    auth = Path(life.environment["CODEX_AUTH_FILE"])
    assert json.loads(auth.read_text()) == life.login and auth.stat().st_mode & 0o777 == 0o600
    writes = {(r["token"], r["method"]) for r in host.log if r["method"] != "GET" and "graphql" not in r["path"]}
    assert writes == {("publish", "POST"), ("invalidate", "PUT"), ("rerun", "POST")}
