// Hard assertions of the public headers: a broken contract leaves by a C++ exception the runtime reports.
//
// The public runtime stops the process here; unwinding instead lets the caller see which call was wrong and
// keeps the host program alive.
#pragma once
#include <cstdio>

namespace simpler {

struct __attribute__((visibility("default"))) ContractViolation {
    char message[240];
};

[[noreturn]] __attribute__((cold, noinline)) inline void violate(const char *file, int line, const char *what) {
    ContractViolation violation;
    std::snprintf(violation.message, sizeof violation.message, "%s:%d: %s", file, line, what);
    throw violation;
}

}  // namespace simpler

#define SIMPLER_REQUIRE(condition, what) \
    (__builtin_expect(!!(condition), 1) ? (void)0 : ::simpler::violate(__FILE__, __LINE__, what))
#ifndef always_assert
#define always_assert(condition) SIMPLER_REQUIRE(condition, "assertion failed: " #condition)
#endif
