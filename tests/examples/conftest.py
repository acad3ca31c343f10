"""The shim, for the example that imports it."""

from tests.kit.shim import installed_shim

__all__ = ["installed_shim"]
