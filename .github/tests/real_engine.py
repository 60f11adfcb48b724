"""A private container engine, and images made of this machine's own programs, for the tests with real containers.

The engine has its own folders and socket, no default bridge and no firewall rules; nothing comes from a registry.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from places import GITHUB

#: What shell scripts in the images need.
TOOLS = (
    *("sh", "cat", "chmod", "chown", "grep", "head", "id", "install", "ls", "mkdir", "mktemp", "mv", "rm", "sleep"),
    *("env", "ln", "sort", "touch", "readlink"),
)
CONTEXT = GITHUB / "codex-review"


def need(*programs: tuple[str, str]) -> None:
    """Skip the test, naming the package, when a program is missing."""
    for program, package in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: apt-get install {package} (or .github/tests/install.sh)")


class Engine:
    """Context manager: an engine of its own; skips the test where none can run."""

    def __init__(self, folder: Path) -> None:
        need(("docker", "docker.io"), ("dockerd", "docker.io"), ("containerd", "docker.io"))
        if os.geteuid() != 0:
            pytest.skip("the container engine needs root")
        self.folder = folder
        self.address = f"unix://{folder}/s"
        self.environment = {**os.environ, "DOCKER_HOST": self.address, "DOCKER_BUILDKIT": "0"}

    def __enter__(self) -> Engine:
        self.log = (self.folder / "log").open("wb")
        options = {
            "iptables": "false",
            "ip6tables": "false",
            "ip-forward": "false",
            "bridge": "none",
            # More than the machine may grant is an error of the runtime.
            "default-ulimit": "nofile=1024:1024",
            "data-root": f"{self.folder}/data",
            "exec-root": f"{self.folder}/exec",
            "pidfile": f"{self.folder}/pid",
            "host": self.address,
        }
        command = ["dockerd", *(f"--{name}={value}" for name, value in options.items())]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        try:
            for _ in range(150):
                if self.process.poll() is not None:
                    pytest.skip("dockerd does not run here: " + (self.folder / "log").read_text()[-400:])
                if self.call("version", check=False).returncode == 0:
                    return self
                time.sleep(0.2)
            pytest.skip("dockerd did not answer within 30 s")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        for kind in ("container", "network"):
            listing = ("ps", "-aq") if kind == "container" else ("network", "ls", "-q", "--filter", "type=custom")
            for found in self.call(*listing, check=False).stdout.split():
                self.call(kind, "rm", *(("-f",) if kind == "container" else ()), found, check=False)
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        # The engine leaves name spaces mounted, and images of a gigabyte.
        for line in Path("/proc/mounts").read_text().splitlines():
            if line.split()[1].startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", line.split()[1]], capture_output=True)
        for name in ("data", "exec"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def call(self, *arguments: str, check: bool = True, timeout: float = 120) -> subprocess.CompletedProcess:
        """The finished docker command; an AssertionError with its message when it fails."""
        done = subprocess.run(
            ["docker", *arguments], env=self.environment, capture_output=True, text=True, timeout=timeout
        )
        assert not check or done.returncode == 0, f"docker {' '.join(arguments[:3])}: {done.stdout}{done.stderr}"
        return done

    def text(self, *arguments: str) -> str:
        """Output of a docker command."""
        return self.call(*arguments).stdout.strip()

    def json(self, *arguments: str) -> list:
        """JSON output of a docker command."""
        return json.loads(self.text(*arguments))

    def load(self, name: str, files: dict, links: dict | None = None) -> str:
        """Import an image; `files` maps its paths to bytes or to files of this machine. Returns the image's id."""
        command = ["docker", "import", "-", name]
        process = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        with tarfile.open(fileobj=process.stdin, mode="w|") as archive:
            folders = {str(p) for path in (*files, *(links or {}), "etc/x", "tmp/x") for p in Path(path).parents}
            for folder in sorted(folders - {"."}):
                entry = tarfile.TarInfo(folder)
                # Some runtimes give a tmpfs the mode of the image's folder, whatever its own option says.
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
                archive.addfile(entry)
            for path, content in files.items():
                data = content if isinstance(content, bytes) else None
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = len(data) if data is not None else content.stat().st_size, 0o755
                with io.BytesIO(data) if data is not None else content.open("rb") as file:
                    archive.addfile(entry, file)
            for path, target in (links or {}).items():
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                archive.addfile(entry)
        process.stdin.close()
        assert process.wait(timeout=120) == 0
        return process.stdout.read().decode().strip()

    def build(self, dockerfile: Path, context: Path, name: str, **arguments: str) -> str:
        """Build an image without any network and return its id."""
        options = [part for key, value in arguments.items() for part in ("--build-arg", f"{key}={value}")]
        self.call(
            "build", "--quiet", "--network", "none", *options, "-t", name, "-f", str(dockerfile), str(context),
            timeout=300,
        )  # fmt: skip
        return self.text("image", "inspect", "--format", "{{.Id}}", name)


def programs(names: Iterable[str]) -> dict:
    """Files of this machine's programs below ``bin`` and of the libraries they load."""
    files: dict = {}
    for name in names:
        source = shutil.which(name)
        if source is None:
            pytest.skip(f"{name} is missing on this machine")
        files[f"bin/{name}"] = Path(source).resolve()
        files.update(libraries(Path(source)))
    return files


def libraries(program: Path) -> dict:
    """The shared libraries that a program or library loads."""
    listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    return {path.lstrip("/"): Path(path).resolve() for path in re.findall(r"(?:=> |^\s+)(/\S+)", listing, re.M)}


def python_files() -> dict:
    """This interpreter with the part of its standard library that the relay needs."""
    program = Path(sys.executable).resolve()
    files = {str(program).lstrip("/"): program, **libraries(program)}
    library = Path(sysconfig.get_paths()["stdlib"])
    unwanted = {"site-packages", "dist-packages", "test", "idlelib", "ensurepip", "__pycache__", "lib2to3", "tkinter"}
    for folder, folders, names in os.walk(library):
        folders[:] = [each for each in folders if each not in unwanted and not each.startswith("config-")]
        for name in names:
            path = Path(folder, name)
            if path.is_file():
                files[str(path).lstrip("/")] = path.resolve()
                if path.name.startswith(("_socket.", "select.", "math.", "_ctypes.")):
                    files.update(libraries(path))
    return files
