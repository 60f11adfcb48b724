"""Plays the real workflow file: job graph, conditions, permissions, shell steps; actions have local stand-ins.

Each job gets a token of its own with exactly the permissions it declares, so a missing or a needless permission shows.
Absolute host paths of the dedicated runner are moved below the scratch folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml
from expressions import condition, expand
from fake_github import FakeGitHub, Token, zip_bytes

GITHUB = Path(__file__).resolve().parents[1]
WORKFLOW = GITHUB / "workflows" / "codex-review.yml"


class Run:
    """One run of the workflow for one event."""

    def __init__(self, host: FakeGitHub, scratch: Path, name: str, event: dict, **settings: Any) -> None:
        self.workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
        self.host, self.scratch, self.name, self.event = host, scratch, name, event
        self.variables: dict = settings.get("variables", {})
        self.secrets: dict = settings.get("secrets", {})
        self.environment: dict = settings.get("environment", {})
        self.workflow_sha: str = settings.get("workflow_sha", "1" * 40)
        self.run_id: int = settings.get("run_id", 1)
        self.attempt: int = settings.get("attempt", 1)
        #: A repository to check the scripts out of; without it they are copied from here.
        self.repository: Path | None = settings.get("repository")
        #: What else to replace in the shell steps: paths and addresses of the dedicated host.
        self.replaced: dict = {"/home/ci-runner": str(scratch / "home"), "sleep 10": "true", "sleep 30": "true"}
        self.replaced.update(settings.get("replaced", {}))
        #: (step name or action) to the number of times it fails first.
        self.failures: dict = settings.get("failures", {})
        self.results: dict = {}
        self.outputs: dict = {}
        self.steps: list = []
        self.summary = ""
        self.log = ""

    def play(self) -> Run:
        """All jobs in the order of their needs."""
        pending = dict(self.workflow["jobs"])
        while pending:
            for name, job in list(pending.items()):
                needs = job.get("needs", [])
                needs = [needs] if isinstance(needs, str) else needs
                if all(need in self.results for need in needs):
                    self._job(name, job, needs)
                    del pending[name]
        return self

    def ran(self) -> dict:
        """Results of the jobs that were not skipped."""
        return {job: result for job, result in self.results.items() if result != "skipped"}

    def _contexts(self, needs: list, token: str = "") -> dict:
        return {
            "github": {
                "event_name": self.name,
                "event": self.event,
                "repository": self.host.repo,
                "repository_id": str(self.host.repository_id),
                "run_id": str(self.run_id),
                "run_attempt": str(self.attempt),
                "workflow_sha": self.workflow_sha,
                "token": token,
            },
            "vars": self.variables,
            "secrets": self.secrets,
            "needs": {n: {"result": self.results[n], "outputs": self.outputs.get(n, {})} for n in needs},
        }

    def _job(self, name: str, job: dict, needs: list) -> None:
        functions = {
            "success": lambda: all(self.results[n] == "success" for n in needs),
            "cancelled": lambda: False,
            "always": lambda: True,
            "failure": lambda: any(self.results[n] == "failure" for n in needs),
        }
        if not condition(job.get("if"), self._contexts(needs), functions):
            self.results[name] = "skipped"
            return
        token = f"job-{name}-{self.run_id}-{self.attempt}"
        self.host.tokens[token] = Token(name, "github-actions[bot]", job["permissions"])
        temp = self.scratch / f"temp-{name}"
        work = self.scratch / f"work-{name}"
        for folder in (temp, work):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        contexts = {**self._contexts(needs, token), "steps": {}, "runner": {"temp": str(temp)}}
        failed = False
        for step in job["steps"]:
            step_functions = {
                "success": lambda: not failed,  # noqa: B023 - called before the next round
                "failure": lambda: failed,  # noqa: B023
                "cancelled": lambda: False,
                "always": lambda: True,
            }
            identifier = step.get("id", step["name"])
            if not condition(step.get("if"), contexts, step_functions):
                contexts["steps"][identifier] = {"outcome": "skipped", "conclusion": "skipped", "outputs": {}}
                continue
            ok, outputs = self._step(name, step, contexts, temp, work)
            outcome = "success" if ok else "failure"
            self.steps.append((name, step["name"], outcome))
            contexts["steps"][identifier] = {"outcome": outcome, "outputs": outputs}
            failed = failed or not (ok or step.get("continue-on-error"))
        self.results[name] = "failure" if failed else "success"
        self.outputs[name] = {k: expand(v, contexts) for k, v in job.get("outputs", {}).items()}

    def _step(self, job: str, step: dict, contexts: dict, temp: Path, work: Path) -> tuple:
        key = step["name"]
        if self.failures.get(key, 0) > 0:
            self.failures[key] -= 1
            return False, {}
        if "uses" in step:
            return self._action(step, contexts, work), {}
        output, summary = temp / "_output", temp / "_summary"
        output.write_text("")
        summary.write_text("")
        event = temp / "_event.json"
        event.write_text(json.dumps(self.event))
        environment = {
            **self.environment,
            "GITHUB_EVENT_NAME": self.name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": self.host.repo,
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": str(self.run_id),
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "RUNNER_TEMP": str(temp),
        }
        for name, value in {**self.workflow["env"], **step.get("env", {})}.items():
            environment[name] = self.environment.get(name) or expand(value, contexts)
        script = expand(step["run"], contexts)
        for text, replacement in self.replaced.items():
            script = script.replace(text, replacement)
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script], cwd=work, env=environment, capture_output=True, text=True
        )
        self.summary += summary.read_text()
        self.log += f"== {job}: {step['name']}\n{done.stdout}{done.stderr}"
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode == 0, outputs

    def _action(self, step: dict, contexts: dict, work: Path) -> bool:
        """Stand-ins for checkout, upload and download."""
        name = step["uses"].split("@")[0]
        settings = {key: expand(value, contexts) for key, value in step.get("with", {}).items()}
        stored = self.host.artifacts.setdefault(self.run_id, [])
        if name == "actions/checkout" and self.repository is not None:
            command = ["git", "archive", settings["ref"], settings["sparse-checkout"]]
            archive = subprocess.run(command, cwd=self.repository, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x"], cwd=work, input=archive, check=True)
            return True
        if name == "actions/checkout":
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(GITHUB / "scripts", work / ".github" / "scripts", ignore=unwanted)
            return True
        if name == "actions/upload-artifact":
            path = Path(settings["path"])
            present = [a for a in stored if a["name"] == settings["name"]]
            if not path.is_file() or (present and settings.get("overwrite") != "true"):
                return False
            for artifact in present:
                stored.remove(artifact)
            data = path.read_bytes()
            archive = zip_bytes({path.name: data})
            self.host.add_artifact(self.run_id, settings["name"], path.name, archive, _plain=data, _file=path.name)
            return True
        found = [a for a in stored if a["name"] == settings["name"]]
        if not found:
            return False
        os.makedirs(settings["path"], exist_ok=True)
        Path(settings["path"], found[0]["_file"]).write_bytes(found[0]["_plain"])
        return True
