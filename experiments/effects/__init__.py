"""The effect study: the paper's tables, and where DDML stands against what people use."""
