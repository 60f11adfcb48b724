"""Parts of AutoTileMatmulL0: which products are tiled and how, and the code of the tiles."""
