"""FlashAttention for AMD gfx906 (MI50, MI60, Radeon VII), with a simulated card for tensors on the CPU.

Importing registers ``torch.ops.flashattn_rocm``; it prints nothing and touches no device.
"""

from flashattn_rocm._extension import __version__, simulated_instructions
from flashattn_rocm.interface import flash_attn_func

__all__ = ["__version__", "flash_attn_func", "simulated_instructions"]
