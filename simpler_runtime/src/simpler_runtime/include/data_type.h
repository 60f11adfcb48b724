// Element types of tensors: the closed list of codes, their sizes and their printed names.
#pragma once
#include <cstdint>

enum class DataType : uint8_t {
    FLOAT32, FLOAT16, INT32, INT16, INT8, UINT8, BFLOAT16, INT64, UINT64, UINT16, UINT32, BOOL,
    FP8E4M3FN, FP8E8M0, FP4E2M1,
};

inline constexpr uint32_t kDataTypeCount = 15;

// Bytes of one element (FP4E2M1 counts pairs: two values share a byte); 0 for a code outside the list.
constexpr uint64_t get_element_size(DataType dtype) {
    constexpr uint8_t kSizes[kDataTypeCount] = {4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1, 1};
    const auto code = static_cast<uint32_t>(dtype);
    return code < kDataTypeCount ? kSizes[code] : 0;
}

constexpr const char *get_dtype_name(DataType dtype) {
    constexpr const char *kNames[kDataTypeCount] = {"FLOAT32", "FLOAT16", "INT32", "INT16", "INT8",
                                                    "UINT8", "BFLOAT16", "INT64", "UINT64", "UINT16",
                                                    "UINT32", "BOOL", "FP8E4M3FN", "FP8E8M0", "FP4E2M1"};
    const auto code = static_cast<uint32_t>(dtype);
    return code < kDataTypeCount ? kNames[code] : "UNKNOWN";
}
