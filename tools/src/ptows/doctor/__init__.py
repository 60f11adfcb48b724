"""Whether this machine can work with the workspace: one check per tool, each with the way to repair it."""

from ptows.doctor.checks import Check, examine_machine
