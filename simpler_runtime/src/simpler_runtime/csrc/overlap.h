// Do two views of one allocation share elements? Exact for boxes of one row-major shape, conservative otherwise.
#pragma once
#include "tensor.h"

namespace simpler {

enum class Overlap : uint8_t { kNone, kCovered, kOther };

// The part of a tensor that the test needs.
struct Region {
    uint64_t begin;          // elements
    uint64_t end;
    uint64_t buffer_elements;
    int32_t version;
    uint32_t ndims;
    DataType dtype;
    uint32_t shapes[MAX_TENSOR_DIMS];
    uint32_t strides[MAX_TENSOR_DIMS];

    static Region of(const ChipTensor &tensor) {
        Region region;
        region.begin = tensor.start_offset;
        region.end = tensor.start_offset + tensor.extent_elem();
        const uint64_t size = get_element_size(tensor.dtype);
        region.buffer_elements = size ? tensor.buffer.size / size : 0;
        region.version = tensor.version;
        region.ndims = tensor.ndims;
        region.dtype = tensor.dtype;
        for (uint32_t d = 0; d < MAX_TENSOR_DIMS; ++d) {
            region.shapes[d] = tensor.shapes[d];
            region.strides[d] = tensor.strides[d];
        }
        return region;
    }
};

// `probe` is the argument of the new task, `entry` an earlier writer.
inline Overlap overlap(const Region &probe, const Region &entry) {
    const bool empty = probe.begin == probe.end || entry.begin == entry.end;
    if (probe.version > entry.version) return empty ? Overlap::kNone : Overlap::kOther;
    if (empty) return Overlap::kNone;
    if (probe.dtype != entry.dtype) {
        // Element positions of different types do not compare: use bytes.
        const uint64_t p = get_element_size(probe.dtype), e = get_element_size(entry.dtype);
        return probe.begin * p >= entry.end * e || entry.begin * e >= probe.end * p ? Overlap::kNone : Overlap::kOther;
    }
    if (probe.begin >= entry.end || entry.begin >= probe.end) return Overlap::kNone;

    const uint32_t n = probe.ndims;
    if (n != entry.ndims || probe.strides[n - 1] != 1) return Overlap::kOther;
    for (uint32_t d = 0; d < n; ++d) {
        if (probe.strides[d] != entry.strides[d]) return Overlap::kOther;
        if (d + 1 < n && probe.strides[d] % probe.strides[d + 1] != 0) return Overlap::kOther;
    }
    const uint64_t elements = probe.buffer_elements;
    if (elements != entry.buffer_elements || elements % probe.strides[0] != 0) return Overlap::kOther;

    // Equal strides are those of one reference shape; both regions are boxes in it.
    uint64_t probe_rest = probe.begin, entry_rest = entry.begin;
    bool covered = true, disjoint = false;
    for (uint32_t d = 0; d < n; ++d) {
        const uint64_t stride = probe.strides[d];
        const uint64_t reference = d == 0 ? elements / stride : probe.strides[d - 1] / stride;
        const uint64_t p = probe_rest / stride, e = entry_rest / stride;
        probe_rest %= stride;
        entry_rest %= stride;
        if (p + probe.shapes[d] > reference || e + entry.shapes[d] > reference) return Overlap::kOther;
        disjoint |= p + probe.shapes[d] <= e || e + entry.shapes[d] <= p;
        covered &= p <= e && p + probe.shapes[d] >= e + entry.shapes[d];
    }
    if (disjoint) return Overlap::kNone;
    return covered ? Overlap::kCovered : Overlap::kOther;
}

}  // namespace simpler
