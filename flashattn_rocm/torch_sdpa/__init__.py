"""torch.nn.functional.scaled_dot_product_attention on these kernels."""
