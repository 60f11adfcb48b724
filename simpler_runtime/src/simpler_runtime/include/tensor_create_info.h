// TensorCreateInfo: description of an output that the runtime allocates when its task is submitted.
#pragma once
#include "tensor.h"

class alignas(64) TensorCreateInfo {
public:
    TensorCreateInfo(const uint32_t shapes[], uint32_t rank, DataType type = DataType::FLOAT32, bool manual = false)
        : ndims(rank), dtype(type), manual_dep(manual) {
        SIMPLER_REQUIRE(rank >= 1 && rank <= MAX_TENSOR_DIMS, "TensorCreateInfo: rank must be 1..5");
        for (uint32_t d = 0; d < rank; ++d) shapes_[d] = shapes[d];
        for (uint32_t d = rank; d < MAX_TENSOR_DIMS; ++d) shapes_[d] = 1;
    }

#ifndef SIMPLER_HOST_BUILD_GRAPH
    // The whole buffer is filled with this element before the task becomes visible. The bytes of `value` are taken
    // as they are when T has the width of an element; otherwise the value is converted to the element type.
    template <typename T = uint64_t>
    void set_initial_value(T value) {
        has_initial_value = true;
        initial_value = sizeof(T) == get_element_size(dtype) || !std::is_arithmetic<T>::value ? to_u64(value)
                                                                                             : convert(value);
    }
#endif

    uint64_t buffer_size_bytes() const {
        uint64_t bytes = get_element_size(dtype);
        for (uint32_t d = 0; d < ndims; ++d) bytes *= shapes_[d];
        return bytes;
    }
    void copy(const TensorCreateInfo &other) { *this = other; }

    // The materialised tensor at `address`.
    void materialize(ChipTensor &tensor, uint64_t address, PTO2TaskId owner) const {
        tensor.owner_task_id = owner;
        tensor.start_offset = 0;
        tensor.version = 0;
        tensor.dtype = dtype;
        tensor.manual_dep = manual_dep;
        tensor.address_space = AddressSpace::HOST;
        tensor.set_contiguous(shapes_, ndims);
        tensor.buffer = PTOBufferHandle{address, tensor.extent_elem_cache * get_element_size(dtype)};
    }

    uint64_t initial_value = 0;
    bool has_initial_value = false;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;

private:
    template <typename T>
    uint64_t convert(T value) const {
        switch (dtype) {
            case DataType::FLOAT32: return to_u64(static_cast<float>(value));
            case DataType::INT64: return to_u64(static_cast<int64_t>(value));
            case DataType::UINT64: return to_u64(static_cast<uint64_t>(value));
            case DataType::INT32: return to_u64(static_cast<int32_t>(value));
            case DataType::UINT32: return to_u64(static_cast<uint32_t>(value));
            case DataType::INT16: return to_u64(static_cast<int16_t>(value));
            case DataType::UINT16: return to_u64(static_cast<uint16_t>(value));
            case DataType::INT8: return to_u64(static_cast<int8_t>(value));
            case DataType::UINT8: return to_u64(static_cast<uint8_t>(value));
            case DataType::BOOL: return to_u64(static_cast<bool>(value));
            default:
                // Small floats: zero has the same bits in all of them; other values come in as raw bits.
                return value == T(0) ? 0 : to_u64(value);
        }
    }

    uint32_t shapes_[MAX_TENSOR_DIMS];
};

static_assert(sizeof(TensorCreateInfo) == 64, "TensorCreateInfo is one cache line");

// A tensor described by `info` at caller-chosen memory of `buffer_bytes` bytes.
inline void init_tensor_from_create_info(ChipTensor &tensor, const TensorCreateInfo &info, void *address,
                                         uint64_t buffer_bytes) {
    info.materialize(tensor, reinterpret_cast<uint64_t>(address), PTO2TaskId::invalid());
    tensor.buffer.size = buffer_bytes;
}
