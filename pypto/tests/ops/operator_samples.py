"""All samples; see ``operator_sample``."""

from __future__ import annotations

import samples_compute
import samples_data
from operator_sample import DTYPE_OF, SAMPLES, TOLERANCE, Draw, Sample, array, as_numbers

MODULES = (samples_compute, samples_data)

__all__ = ["DTYPE_OF", "MODULES", "SAMPLES", "TOLERANCE", "Draw", "Sample", "array", "as_numbers"]
