"""What holds for every test."""

import os

# The choice of kernels must not depend on what somebody measured on this machine.
os.environ["FLASHATTN_ROCM_CONFIG"] = "off"
