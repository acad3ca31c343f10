"""FlashAttention for AMD gfx906 (MI50, MI60, Radeon VII), with a simulated card for tensors on the CPU.

Importing registers ``torch.ops.flashattn_rocm``; it prints nothing and touches no device.
"""

from flashattn_rocm._extension import __version__, simulated_instructions
from flashattn_rocm.interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from flashattn_rocm.merge import merge_states

__all__ = [
    "__version__",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "merge_states",
    "simulated_instructions",
]
