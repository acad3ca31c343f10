"""FlashAttention for AMD gfx906 (MI50, MI60, Radeon VII), with a simulated card for tensors on the CPU.

Importing registers ``torch.ops.flashattn_rocm`` and, if FLASHATTN_ROCM_SDPA asks for it, switches torch's
scaled_dot_product_attention over; it prints nothing and touches no device.
"""

from flashattn_rocm._extension import __version__, simulated_instructions
from flashattn_rocm.cascade import flash_attn_with_shared_prefix
from flashattn_rocm.dispatch import explain_dispatch, use_tile
from flashattn_rocm.interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from flashattn_rocm.kvcache import flash_attn_with_kvcache
from flashattn_rocm.merge import merge_states
from flashattn_rocm.mla import flash_mla_with_kvcache
from flashattn_rocm.torch_sdpa.counts import SdpaCounts
from flashattn_rocm.torch_sdpa.switch import (
    disable_sdpa,
    enable_from_environment,
    enable_sdpa,
    register_with_torch,
    sdpa,
    sdpa_counts,
)
from flashattn_rocm.tuning.user_config import offer_tuning

__all__ = [
    "SdpaCounts",
    "__version__",
    "disable_sdpa",
    "enable_sdpa",
    "explain_dispatch",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "flash_attn_with_shared_prefix",
    "flash_mla_with_kvcache",
    "merge_states",
    "sdpa",
    "sdpa_counts",
    "simulated_instructions",
    "use_tile",
]

offer_tuning()
register_with_torch()
enable_from_environment()
