"""What torch runs at the end of its own import: an entry point in the group "torch.backends".

It is a module of its own so that ``import torch`` loads nothing more unless FLASHATTN_ROCM_SDPA is set.
"""

import os


def autoload() -> None:
    """Imports the package, which reads the variable, if that could change anything."""
    if os.environ.get("FLASHATTN_ROCM_SDPA", "0") != "0":
        import flashattn_rocm  # noqa: F401
