"""Plans for PyTorch's FSDP2 within a memory limit, with a proven bound."""
from .plans import Plan
from .program import VERSION as __version__
from .program import WeftError
from .records import Record, record

__all__ = ["Plan", "Record", "WeftError", "record", "__version__"]
