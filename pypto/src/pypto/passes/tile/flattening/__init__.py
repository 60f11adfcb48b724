"""Parts of FlattenTileNdTo2D: shape arithmetic and batched products."""
