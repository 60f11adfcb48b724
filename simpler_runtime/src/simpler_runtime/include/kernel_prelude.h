// Forced in front of every kernel source: gives the entry point external visibility.
#pragma once
#include <cstdint>

extern "C" __attribute__((visibility("default"))) void kernel_entry(int64_t *args);
