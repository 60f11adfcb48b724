"""Stands in for ``docker`` on PATH: volumes, networks and containers as files in FAKE_DOCKER_STATE.

``run`` accepts only the flags the review uses, refuses a missing hardening flag, maps mounts to real directories and
then plays ``scenario.json``, a list of agent runs: {"events", "log", "exit", "plant", "sleep", "touch"}. Every call is
appended to ``calls.jsonl`` with arguments, stdin and environment; ``fail.json`` maps the start of a command line to an
error text.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

STATE = Path(os.environ["FAKE_DOCKER_STATE"])
HARDENING = {
    ("--read-only", None),
    ("--cap-drop", "ALL"),
    ("--security-opt", "no-new-privileges"),
}
FLAGS = {"--rm", "--interactive", "--detach", "--read-only"}
OPTIONS = {
    "--name",
    "--hostname",
    "--network",
    "--cap-drop",
    "--cap-add",
    "--security-opt",
    "--pids-limit",
    "--memory",
    "--cpus",
    "--user",
    "--mount",
    "--tmpfs",
    "--env",
    "--entrypoint",
    "--label",
}


def load(name: str, default: object) -> object:
    """A state file, or the default."""
    path = STATE / name
    return json.loads(path.read_text()) if path.exists() else default


def save(name: str, value: object) -> None:
    """Write a state file."""
    (STATE / name).write_text(json.dumps(value))


def fail(message: str, code: int = 1) -> int:
    """An error as the client prints it."""
    print(message, file=sys.stderr)
    return code


def volume(arguments: list) -> int:
    """volume inspect|create|rm."""
    volumes = dict(load("volumes.json", {}))
    verb, name = arguments[0], arguments[-1]
    if verb == "inspect":
        if name not in volumes:
            print("[]")
            return fail(f"Error response from daemon: get {name}: no such volume")
        print(json.dumps([{"Name": name, "Labels": volumes[name]}]))
        return 0
    if verb == "create":
        labels = dict(arguments[i + 1].split("=", 1) for i, a in enumerate(arguments) if a == "--label")
        volumes[name] = labels
        (STATE / "volumes" / name).mkdir(parents=True, exist_ok=True)
        print(name)
    elif verb == "rm":
        if name not in volumes:
            return fail(f"Error response from daemon: get {name}: no such volume")
        del volumes[name]
        shutil.rmtree(STATE / "volumes" / name, ignore_errors=True)
        print(name)
    else:
        return fail(f"unknown volume command {verb}", 2)
    save("volumes.json", volumes)
    return 0


def network(arguments: list) -> int:
    """network inspect|create|rm|connect."""
    networks = dict(load("networks.json", {"pypto-codex-egress": {}}))
    verb, name = arguments[0], arguments[-1]
    if verb == "inspect":
        if name not in networks:
            return fail(f"Error response from daemon: network {name} not found")
        print("172.30.0.1 ")
    elif verb == "create":
        networks[name] = {"internal": "--internal" in arguments}
        print("f" * 64)
    elif verb == "rm":
        if networks.pop(name, None) is None:
            return fail(f"Error response from daemon: network {name} not found")
    elif verb == "ls":
        print("".join(f"{key}\n" for key in networks if key.startswith("codex-review-")), end="")
    elif verb != "connect":
        return fail(f"unknown network command {verb}", 2)
    save("networks.json", networks)
    return 0


def run(arguments: list) -> int:
    """run with the review's flags only."""
    seen, mounts, tmpfs, environment = [], {}, [], {}
    settings: dict = {}
    while arguments and arguments[0].startswith("--"):
        flag = arguments.pop(0)
        value = None
        if flag in OPTIONS:
            value = arguments.pop(0)
        elif flag not in FLAGS:
            return fail(f"unknown flag: {flag}", 125)
        seen.append((flag, value))
        if flag == "--mount":
            entry = dict(part.split("=", 1) if "=" in part else (part, True) for part in value.split(","))
            mounts[entry["dst"]] = entry
        elif flag == "--tmpfs":
            tmpfs.append(value.split(":")[0])
        elif flag == "--env":
            environment.update([value.split("=", 1)])
        else:
            settings[flag] = value
    missing = HARDENING - set(seen)
    if missing:
        return fail(f"fake docker: missing hardening {sorted(missing, key=str)}", 125)
    image, command = arguments[0], arguments[1:]
    if "--detach" in dict(seen):
        containers = dict(load("containers.json", {}))
        containers[settings["--name"]] = {"image": image, "settings": settings}
        save("containers.json", containers)
        print("e" * 64)
        return 0
    for entry in mounts.values():
        if entry["type"] == "volume" and entry["src"] not in dict(load("volumes.json", {})):
            return fail(f"fake docker: volume {entry['src']} does not exist", 125)
        if entry["type"] == "bind" and not os.path.exists(entry["src"]):
            return fail(f"bind source path does not exist: {entry['src']}", 125)
    if settings.get("--entrypoint") == "/bin/sh":
        return helper(command, mounts, settings)
    return agent(command, mounts, tmpfs, environment)


def helper(command: list, mounts: dict, settings: dict) -> int:
    """The one-shot containers: initialise, read, write."""
    if settings.get("--network") != "none":
        return fail("fake docker: a helper container has a network", 125)
    script = command[1]
    if settings["--user"] == "0:0":
        return 0 if script.startswith("chown 1002:1003 ") and not any("workspace" in m for m in mounts) else 125
    state = STATE / "volumes" / mounts["/codex-state"]["src"] / "review-session-id"
    if "printf" not in script:
        if state.exists():
            sys.stdout.write(state.read_text())
        return 0
    if mounts["/codex-state"].get("readonly"):
        return fail("read-only file system")
    session = script.split("printf %s ")[1].split(" ")[0]
    state.write_text(session)
    return 0


def agent(command: list, mounts: dict, tmpfs: list, environment: dict) -> int:
    """Play the next run of the scenario and record what the agent could see."""
    scenario = list(load("scenario.json", []))
    played = int(load("played.json", 0))
    save("played.json", played + 1)
    step = scenario[min(played, len(scenario) - 1)]
    view = {
        "command": command,
        "environment": environment,
        "tmpfs": tmpfs,
        "readonly": sorted(dst for dst, entry in mounts.items() if entry.get("readonly")),
        "writable": sorted(dst for dst, entry in mounts.items() if not entry.get("readonly")),
        "diff": Path(mounts["/review-diff.patch"]["src"]).read_bytes().decode("utf-8", "surrogateescape"),
        "discussion": json.loads(Path(mounts["/review-discussion.json"]["src"]).read_text()),
        "schema": json.loads(Path(mounts["/review-schema.json"]["src"]).read_text()),
        "files": sorted(os.listdir(mounts["/workspace"]["src"])),
        "stdin": STDIN.decode("utf-8", "replace"),
    }
    views = list(load("views.json", []))
    save("views.json", [*views, view])
    if step.get("touch"):
        Path(step["touch"]).touch()
    time.sleep(step.get("sleep", 0))
    resumed = command[command.index("resume") + 1] if "resume" in command else None
    for event in step.get("events", []):
        line = event if isinstance(event, str) else json.dumps(event)
        print(line.replace("$RESUMED", resumed or "$RESUMED"))
    sys.stderr.write(step.get("log", ""))
    for name, text in step.get("plant", {}).items():
        (STATE / "volumes" / mounts["/codex-state"]["src"] / name).write_text(text)
    return step.get("exit", 0)


def main(arguments: list) -> int:
    """Record the call and answer it."""
    call = {"arguments": arguments, "environment": dict(os.environ), "stdin": STDIN.decode("utf-8", "replace")}
    with open(STATE / "calls.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(call) + "\n")
    line = " ".join(arguments)
    for start, message in dict(load("fail.json", {})).items():
        if line.startswith(start):
            return fail(message)
    verb = arguments.pop(0)
    if verb == "volume":
        return volume(arguments)
    if verb == "network":
        return network(arguments)
    if verb == "run":
        return run(arguments)
    if verb == "pull":
        return 0
    if verb == "container" and arguments[0] == "inspect":
        print(load("relay.json", "running/healthy"))
        return 0
    if verb == "ps":
        print("".join(f"{key}\n" for key in load("containers.json", {}) if key.startswith("codex-")), end="")
        return 0
    if verb == "rm":
        containers = dict(load("containers.json", {}))
        if containers.pop(arguments[-1], None) is None:
            return fail(f"Error: No such container: {arguments[-1]}")
        save("containers.json", containers)
        return 0
    return fail(f"unknown command {verb}", 2)


STDIN = b""
if __name__ == "__main__":
    if "--interactive" in sys.argv:
        STDIN = sys.stdin.buffer.read()
    sys.exit(main(sys.argv[1:]))
