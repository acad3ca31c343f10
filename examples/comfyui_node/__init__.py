"""A custom node for ComfyUI that puts one model's attention on these kernels: copy it into custom_nodes/."""

from typing import Any

from flashattn_rocm.integrations import comfyui


class AttentionOnGfx906:
    """MODEL in, MODEL out; every attention of the model runs on the card's own kernels."""

    RETURN_TYPES = ("MODEL",)
    FUNCTION = "patch"
    CATEGORY = "model_patches"

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:  # noqa: N802 - ComfyUI's name
        """What ComfyUI shows as inputs."""
        return {"required": {"model": ("MODEL",)}}

    def patch(self, model: Any) -> tuple[Any]:
        """A clone of the model; the one that came in keeps its attention."""
        clone = model.clone()
        clone.model_options["transformer_options"]["optimized_attention_override"] = comfyui.override
        return (clone,)


NODE_CLASS_MAPPINGS: dict[str, type] = {"AttentionOnGfx906": AttentionOnGfx906}
NODE_DISPLAY_NAME_MAPPINGS: dict[str, str] = {"AttentionOnGfx906": "Attention on gfx906 (flashattn_rocm)"}
