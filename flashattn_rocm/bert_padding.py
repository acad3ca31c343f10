"""Between padded batches and sequences laid end to end, with the names of ``flash_attn.bert_padding`` 2.8.

All of it is plain torch, differentiable, and runs on any device. The functions that unpad copy the number of
tokens and the longest length to the host.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = [
    "index_first_axis",
    "index_first_axis_residual",
    "index_put_first_axis",
    "pad_input",
    "unpad_input",
    "unpad_input_for_concatenated_sequences",
]


def index_first_axis(input: Tensor, indices: Tensor) -> Tensor:
    """Takes rows.

    Args:
        input: (rows, ...).
        indices: (n,), integers, all different.

    Returns:
        (n, ...).
    """
    return input.index_select(0, indices)


def index_first_axis_residual(input: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Takes rows, and passes the tensor on for a residual connection.

    Args:
        input: (rows, ...).
        indices: (n,), integers, all different.

    Returns:
        (n, ...), and input.
    """
    return input.index_select(0, indices), input


def index_put_first_axis(values: Tensor, indices: Tensor, first_axis_dim: int) -> Tensor:
    """Puts rows into a tensor of zeros.

    Args:
        values: (n, ...).
        indices: (n,), integers, all different: where each row goes.
        first_axis_dim: rows of the result.

    Returns:
        (first_axis_dim, ...).
    """
    return values.new_zeros(first_axis_dim, *values.shape[1:]).index_copy(0, indices.long(), values)


def unpad_input(
    hidden_states: Tensor, attention_mask: Tensor, unused_mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, int, Tensor]:
    """Lays the tokens of a padded batch end to end.

    Args:
        hidden_states: (batch, seqlen, ...).
        attention_mask: (batch, seqlen), bool or int: 1 keeps a token.
        unused_mask: likewise; its tokens are laid out too, but not counted as used.

    Returns:
        hidden_states (total, ...) of the tokens that either mask keeps; indices (total,) of them in the
        flattened batch; cu_seqlens (batch + 1,) int32; max_seqlen; and seqused (batch,) int32, the tokens
        of each row that attention_mask keeps.
    """
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(-1, dtype=torch.int32)
    indices = kept.flatten().nonzero().flatten()
    used = attention_mask.sum(-1, dtype=torch.int32)
    return (*_gather(hidden_states, indices, lengths), used)


def unpad_input_for_concatenated_sequences(
    hidden_states: Tensor, attention_mask_in_length: Tensor
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Lays the tokens of a padded batch end to end whose rows hold several sequences each.

    Args:
        hidden_states: (batch, seqlen, ...).
        attention_mask_in_length: (batch, seqlen), int: the lengths of the sequences of a row, in their
            order, then zeros. ``[2, 4, 0, 0, 0, 0, 0]`` are a sequence of 2, one of 4, and one token of
            padding.

    Returns:
        hidden_states (total, ...), indices (total,) in the flattened batch, cu_seqlens (sequences + 1,)
        int32, and max_seqlen.
    """
    seqlen = attention_mask_in_length.shape[-1]
    filled = attention_mask_in_length.sum(-1, keepdim=True)
    indices = (torch.arange(seqlen, device=filled.device) < filled).flatten().nonzero().flatten()
    lengths = attention_mask_in_length.flatten()
    return _gather(hidden_states, indices, lengths[lengths > 0].to(torch.int32))


def pad_input(hidden_states: Tensor, indices: Tensor, batch: int, seqlen: int) -> Tensor:
    """The reverse of :func:`unpad_input`; padding is 0.

    Args:
        hidden_states: (total, ...).
        indices: (total,), from :func:`unpad_input`.
        batch: rows of the padded batch.
        seqlen: tokens of a padded row.

    Returns:
        (batch, seqlen, ...).
    """
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))


def _gather(hidden_states: Tensor, indices: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    cu_seqlens = pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    max_seqlen = int(lengths.max()) if lengths.numel() else 0
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, cu_seqlens, max_seqlen
