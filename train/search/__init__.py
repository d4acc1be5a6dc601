"""Tree search over the exact game; the only folder that imports mctx."""
