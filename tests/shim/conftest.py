"""The fixture that installs the shim."""

from tests.kit.shim import installed_shim

__all__ = ["installed_shim"]
