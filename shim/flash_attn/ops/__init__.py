"""Operations that other packages import from flash-attn."""
