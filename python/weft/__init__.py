# SPDX-License-Identifier: Apache-2.0
"""Plans for PyTorch's FSDP2 within a memory limit, with a proven bound."""
from .measures import Measured, measure
from .planning import plan
from .plans import Plan
from .program import VERSION as __version__
from .program import WeftError
from .records import Record, record

__all__ = ["Measured", "Plan", "Record", "WeftError", "measure", "plan", "record", "__version__"]
