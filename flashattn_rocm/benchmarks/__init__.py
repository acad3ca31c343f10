"""Speed of the kernels beside their rivals: shapes, implementations, measuring, tables."""
