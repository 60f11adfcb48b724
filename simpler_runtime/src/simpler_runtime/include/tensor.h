// ChipTensor: the 128-byte record of a strided tensor view that tasks, kernels and the host share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "contract.h"
#include "data_type.h"
#include "scalar_packing.h"
#include "task_id.h"
#include "task_limits.h"

struct alignas(64) ChipTensor {
    PTOBufferHandle buffer;        // the allocation, not the origin of the view
    PTO2TaskId owner_task_id;      // task that allocated it; invalid for external memory
    uint64_t start_offset;         // origin of the view, in elements from buffer.addr
    int32_t version;
    uint32_t ndims;                // 1..5
    DataType dtype;
    bool manual_dep;               // only the creator edge is tracked
    bool is_contiguous;
    AddressSpace address_space;
    uint32_t shapes[MAX_TENSOR_DIMS];
    uint64_t extent_elem_cache;    // 1 + sum((shape - 1) * stride), 0 for an empty view
    uint32_t strides[MAX_TENSOR_DIMS];  // elements, always > 0

    uint64_t numel() const {
        uint64_t count = 1;
        for (uint32_t d = 0; d < ndims; ++d) count *= shapes[d];
        return count;
    }
    uint64_t nbytes() const { return numel() * get_element_size(dtype); }
    uint64_t extent_elem() const { return is_contiguous ? numel() : extent_elem_cache; }
    bool is_device_memory() const { return address_space == AddressSpace::DEVICE; }

    // Typed pointer to the allocation: start_offset is not applied.
    template <typename T>
    T *data_as() const { return reinterpret_cast<T *>(buffer.addr); }

    uint64_t compute_flat_offset(const uint32_t indices[], uint32_t n) const {
        uint64_t offset = start_offset;
        for (uint32_t d = 0; d < n; ++d) offset += static_cast<uint64_t>(indices[d]) * strides[d];
        return offset;
    }

    // Box of the same rank at `offsets`. A zero extent makes an empty view that keeps the origin.
    ChipTensor view(const uint32_t view_shapes[], const uint32_t offsets[], bool manual = false) const {
        ChipTensor result = *this;
        result.manual_dep = manual;
        bool empty = false;
        for (uint32_t d = 0; d < ndims; ++d) {
            result.shapes[d] = view_shapes[d];
            empty |= view_shapes[d] == 0;
        }
        if (!empty) {
            for (uint32_t d = 0; d < ndims; ++d) {
                SIMPLER_REQUIRE(static_cast<uint64_t>(offsets[d]) + view_shapes[d] <= shapes[d],
                                "ChipTensor::view: offset + shape exceeds the parent in some dimension");
                result.start_offset += static_cast<uint64_t>(offsets[d]) * strides[d];
            }
        }
        result.refresh_layout();
        return result;
    }

    bool valid_transpose(uint32_t x, uint32_t y) const { return x < ndims && y < ndims; }
    ChipTensor transpose(uint32_t x, uint32_t y, bool manual = false) const {
        SIMPLER_REQUIRE(valid_transpose(x, y), "ChipTensor::transpose: axis out of range");
        ChipTensor result = *this;
        result.manual_dep = manual;
        result.shapes[x] = shapes[y];
        result.shapes[y] = shapes[x];
        result.strides[x] = strides[y];
        result.strides[y] = strides[x];
        result.refresh_layout();
        return result;
    }

    ChipTensor permute(const uint32_t order[], bool manual = false) const {
        ChipTensor result = *this;
        result.manual_dep = manual;
        uint32_t seen = 0;
        for (uint32_t d = 0; d < ndims; ++d) {
            SIMPLER_REQUIRE(order[d] < ndims && !(seen & (1u << order[d])), "ChipTensor::permute: not a permutation");
            seen |= 1u << order[d];
            result.shapes[d] = shapes[order[d]];
            result.strides[d] = strides[order[d]];
        }
        result.refresh_layout();
        return result;
    }

    // Every `step`-th index of [start, end) in one dimension.
    ChipTensor slice(uint32_t dim, uint32_t start, uint32_t end, uint32_t step = 1, bool manual = false) const {
        SIMPLER_REQUIRE(dim < ndims, "ChipTensor::slice: dimension out of range");
        SIMPLER_REQUIRE(step >= 1 && end > start && end <= shapes[dim],
                        "ChipTensor::slice: needs step >= 1 and start < end <= shape");
        ChipTensor result = *this;
        result.manual_dep = manual;
        result.start_offset += static_cast<uint64_t>(start) * strides[dim];
        result.shapes[dim] = (end - start + step - 1) / step;
        result.strides[dim] = strides[dim] * step;
        result.refresh_layout();
        return result;
    }

    bool valid_reshape(const uint32_t new_shapes[], uint32_t new_ndims) const {
        if (!is_contiguous || new_ndims < 1 || new_ndims > MAX_TENSOR_DIMS) return false;
        uint64_t count = 1;
        for (uint32_t d = 0; d < new_ndims; ++d) count *= new_shapes[d];
        return count == numel();
    }
    ChipTensor reshape(const uint32_t new_shapes[], uint32_t new_ndims, bool manual = false) const {
        SIMPLER_REQUIRE(valid_reshape(new_shapes, new_ndims),
                        "ChipTensor::reshape: needs a contiguous tensor and an equal element count");
        ChipTensor result = *this;
        result.manual_dep = manual;
        result.set_contiguous(new_shapes, new_ndims);
        return result;
    }

    void dump() const {
        std::printf("ChipTensor addr=0x%llx size=%llu start_offset=%llu dtype=%s ndims=%u\n",
                    static_cast<unsigned long long>(buffer.addr), static_cast<unsigned long long>(buffer.size),
                    static_cast<unsigned long long>(start_offset), get_dtype_name(dtype), ndims);
        for (uint32_t d = 0; d < ndims; ++d) std::printf("  dim %u: shape=%u stride=%u\n", d, shapes[d], strides[d]);
        std::printf("  owner=0x%llx version=%d manual_dep=%d contiguous=%d device=%d\n",
                    static_cast<unsigned long long>(owner_task_id.raw), version, manual_dep, is_contiguous,
                    is_device_memory());
    }

    // Row-major layout of `new_shapes` at the present origin.
    void set_contiguous(const uint32_t new_shapes[], uint32_t new_ndims) {
        ndims = new_ndims;
        uint64_t stride = 1;
        for (uint32_t d = new_ndims; d-- > 0;) {
            shapes[d] = new_shapes[d];
            strides[d] = static_cast<uint32_t>(stride ? stride : 1);
            stride *= new_shapes[d];
        }
        for (uint32_t d = new_ndims; d < MAX_TENSOR_DIMS; ++d) {
            shapes[d] = 1;
            strides[d] = 1;
        }
        is_contiguous = true;
        extent_elem_cache = stride;
    }

    // Derives is_contiguous and the extent from shapes and strides. The stride of a length-1 dimension is free.
    void refresh_layout() {
        uint64_t extent = 1, row_major = 1;
        bool contiguous = true;
        for (uint32_t d = ndims; d-- > 0;) {
            if (shapes[d] == 0) {
                is_contiguous = true;
                extent_elem_cache = 0;
                return;
            }
            extent += static_cast<uint64_t>(shapes[d] - 1) * strides[d];
            contiguous &= shapes[d] == 1 || strides[d] == row_major;
            row_major *= shapes[d];
        }
        is_contiguous = contiguous;
        extent_elem_cache = extent;
    }
};

static_assert(sizeof(ChipTensor) == 128 && std::is_trivially_copyable<ChipTensor>::value, "ChipTensor ABI");
static_assert(offsetof(ChipTensor, owner_task_id) == 16 && offsetof(ChipTensor, start_offset) == 24 &&
                  offsetof(ChipTensor, version) == 32 && offsetof(ChipTensor, ndims) == 36 &&
                  offsetof(ChipTensor, dtype) == 40 && offsetof(ChipTensor, shapes) == 44 &&
                  offsetof(ChipTensor, extent_elem_cache) == 64 && offsetof(ChipTensor, strides) == 72,
              "ChipTensor ABI");

// Contiguous tensor over caller-owned memory; addr is its first element.
inline ChipTensor make_tensor_external(void *addr, const uint32_t shapes[], uint32_t ndims,
                                       DataType dtype = DataType::FLOAT32, bool manual_dep = false,
                                       int32_t version = 0, AddressSpace address_space = AddressSpace::HOST) {
    SIMPLER_REQUIRE(ndims >= 1 && ndims <= MAX_TENSOR_DIMS, "make_tensor_external: rank must be 1..5");
    ChipTensor tensor{};
    tensor.owner_task_id = PTO2TaskId::invalid();
    tensor.version = version;
    tensor.dtype = dtype;
    tensor.manual_dep = manual_dep;
    tensor.address_space = address_space;
    tensor.set_contiguous(shapes, ndims);
    tensor.buffer = PTOBufferHandle{reinterpret_cast<uint64_t>(addr), tensor.numel() * get_element_size(dtype)};
    return tensor;
}

// Strided tensor over caller-owned memory; addr is the origin of the view.
inline ChipTensor make_tensor_strided(void *addr, const uint32_t shapes[], const uint32_t strides[], uint32_t ndims,
                                      DataType dtype = DataType::FLOAT32, bool manual_dep = false,
                                      int32_t version = 0, AddressSpace address_space = AddressSpace::HOST) {
    ChipTensor tensor = make_tensor_external(addr, shapes, ndims, dtype, manual_dep, version, address_space);
    for (uint32_t d = 0; d < ndims; ++d) {
        SIMPLER_REQUIRE(strides[d] > 0, "make_tensor_strided: strides must be positive");
        tensor.strides[d] = strides[d];
    }
    tensor.refresh_layout();
    tensor.buffer.size = tensor.extent_elem() * get_element_size(dtype);
    return tensor;
}
