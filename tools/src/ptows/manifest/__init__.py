"""The manifest: ``workspace.yaml``, what it imports, and ``workspace.local.yaml``."""

from ptows.manifest.load import find_root, load
from ptows.manifest.model import Entry, Manifest, Session, Tool, Tracks, is_full_sha
