"""Stand-ins for what the plugin takes from vLLM, where vLLM is not installed.

Only names, signatures and defaults of vLLM 0.19's ``vllm.v1.attention`` that the plugin relies on.
"""

import sys
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType


class AttentionType(str, Enum):
    DECODER = "decoder"
    ENCODER = "encoder"
    ENCODER_ONLY = "encoder_only"
    ENCODER_DECODER = "encoder_decoder"


class MultipleOf:
    def __init__(self, base) -> None:
        self.base = base


class AttentionCGSupport(Enum):
    ALWAYS = 3
    UNIFORM_BATCH = 2
    UNIFORM_SINGLE_TOKEN_DECODE = 1
    NEVER = 0


class AttentionBackend:
    accept_output_buffer = False
    forward_includes_kv_cache_update = True


class AttentionMetadataBuilder:
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device) -> None:
        self.device = device


class AttentionImpl:
    pass


class AttentionBackendEnum(Enum):
    CUSTOM = None


@dataclass
class Registry:
    """What was registered."""

    paths: dict[AttentionBackendEnum, str] = field(default_factory=dict)

    def register_backend(self, backend, class_path=None, is_mamba=False):
        self.paths[backend] = class_path


def stand_in(monkeypatch) -> Registry:
    """Makes the modules importable for one test."""
    registry = Registry()
    modules = {
        "vllm.v1.attention.backend": (
            *(AttentionType, MultipleOf, AttentionCGSupport, AttentionBackend),
            *(AttentionMetadataBuilder, AttentionImpl),
        ),
        "vllm.v1.attention.backends.registry": (AttentionBackendEnum, registry.register_backend),
    }
    for name, contents in modules.items():
        parts = name.split(".")
        for i in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:i]), ModuleType(".".join(parts[:i])))
        module = ModuleType(name)
        for each in contents:
            setattr(module, each.__name__, each)
        monkeypatch.setitem(sys.modules, name, module)
    return registry
