"""The fixed text before the functions of an emitted file (section 11.1), and the helpers printed only when used."""

PROLOGUE = """\
#include "pto/pto-inst.hpp"
using namespace pto;

template <typename Tensor>
static AICORE inline auto PTOAS__GLOBAL_TENSOR_DATA(Tensor &tensor) -> decltype(tensor.data()) {
  return tensor.data();
}

enum class PTOAutoSyncTailMode : int {
  kBarrierAll = 0,
  kSetWaitMte3ToSEvent0 = 1,
};

static AICORE inline void ptoas_auto_sync_tail(PTOAutoSyncTailMode mode = PTOAutoSyncTailMode::kBarrierAll) {
  if (mode == PTOAutoSyncTailMode::kSetWaitMte3ToSEvent0) {
    set_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_S, EVENT_ID0);
  } else {
    pipe_barrier(PIPE_ALL);
  }
}

template <typename Ptr>
static AICORE inline void PTOAS__DCCI_SINGLE_CACHE_LINE(Ptr ptr) {
  dcci((__gm__ void *)ptr, cache_line_t::SINGLE_CACHE_LINE);
}
"""

HELPERS = {
    "PTOAS_CHECK_WINDOW": """\
// The CPU headers check that windows stay inside their tensors; elsewhere this costs nothing.
#if defined(PTO_CHECK_WINDOW)
#define PTOAS_CHECK_WINDOW PTO_CHECK_WINDOW
#else
#define PTOAS_CHECK_WINDOW(...)
#endif
""",
    "ptoas_bitcast": """\
template <typename To, typename From>
static AICORE inline To ptoas_bitcast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
""",
    "PTOAS_EventIdArray": """\
template <int Count>
struct PTOAS_EventIdArray {
  int64_t ids[Count] = {};
  AICORE inline int64_t &operator[](int64_t index) { return ids[index]; }
};
""",
}
