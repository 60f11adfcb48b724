"""Byte offsets in the communication context that generated kernels and the runtime share (64 ranks)."""

#: Rank of this device (u32).
RANK_ID_OFFSET = 16
#: Number of ranks (u32).
RANK_NUM_OFFSET = 20
#: Base addresses of the incoming windows, one u64 per rank.
WINDOWS_IN_OFFSET = 32
#: Base addresses of the outgoing windows, one u64 per rank.
WINDOWS_OUT_OFFSET = 544
#: Bytes from one rank's window address to the next.
WINDOW_SLOT_STRIDE = 8
#: Size of the context.
COMM_CTX_SIZE = 1056
