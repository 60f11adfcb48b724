"""What can go wrong, each with its exit code: 1 failed, 2 wrong usage or manifest, 3 refused, 130 interrupted."""

from __future__ import annotations

from dataclasses import dataclass

OK, FAILED, USAGE, REFUSED, INTERRUPTED = 0, 1, 2, 3, 130


class PtowsError(Exception):
    """Something failed. ``hint`` says what to do about it."""

    exit_code = FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(PtowsError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = USAGE


class RefusedError(PtowsError):
    """Going on would touch local work."""

    exit_code = REFUSED


class MissingFeatureError(PtowsError, NotImplementedError):
    """A named part of the command line that this installation does not have."""


@dataclass(frozen=True)
class Problem:
    """One mistake in a manifest: where it is, what was found, what would be right."""

    file: str
    line: int
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.what} (line {self.line}): {self.hint}".rstrip(": ")


class ManifestError(UsageError):
    """All mistakes found in the manifest files, in the order of their lines."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda p: (p.file, p.line))
        super().__init__("\n".join(str(problem) for problem in self.problems))
