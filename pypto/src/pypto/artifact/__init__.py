"""The artifact folder: layout, manifest, sidecar."""

from __future__ import annotations

from pypto.artifact.layout import default_output_dir, write_files
from pypto.artifact.manifest import Manifest, read_manifest
from pypto.artifact.sidecar import ArtifactMeta, ParamInfo, read_sidecar, write_sidecar
