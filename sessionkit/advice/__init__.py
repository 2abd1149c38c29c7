"""Which settings: gaps and graces that the records suggest, and what each would cost."""
