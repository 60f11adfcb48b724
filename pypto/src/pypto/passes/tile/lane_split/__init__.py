"""Parts of LowerAutoVectorSplit: halving of vector code and checks of hand-split regions."""
