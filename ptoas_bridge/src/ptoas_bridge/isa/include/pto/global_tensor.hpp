// GlobalTensor: a pointer into global memory with a five-dimensional shape and stride, each extent static or dynamic.
#pragma once
#include <cstdint>
#include <type_traits>

#include "enums.hpp"
#include "error.hpp"

namespace pto {
namespace isa {

// Five extents; template argument -1 is dynamic. Constructors take all five or only the dynamic ones.
template <int64_t N0, int64_t N1, int64_t N2, int64_t N3, int64_t N4>
struct Extents {
    static constexpr int64_t kStatic[5] = {N0, N1, N2, N3, N4};
    static constexpr int kDynamicCount = (N0 < 0) + (N1 < 0) + (N2 < 0) + (N3 < 0) + (N4 < 0);

    Extents() {
        for (int i = 0; i < 5; ++i) values[i] = kStatic[i] < 0 ? 1 : kStatic[i];
    }
    template <class... Values, class = decltype((int64_t(Values{}) + ... + 0))>
    Extents(Values... given) {
        constexpr int count = sizeof...(Values);
        static_assert(count == kDynamicCount || count == 5, "give the dynamic extents, or all five");
        const int64_t list[] = {static_cast<int64_t>(given)...};
        int next = 0;
        for (int i = 0; i < 5; ++i) {
            if (count == 5)
                values[i] = kStatic[i] < 0 ? list[i] : kStatic[i];
            else
                values[i] = kStatic[i] < 0 ? list[next++] : kStatic[i];
        }
    }
    int64_t operator[](int i) const { return values[i]; }

    int64_t values[5];
};

// A window [offset, offset + size) of one dimension of a tensor must lie inside [0, extent); dimension -1 stands for
// single elements of the whole memory.
inline void check_window(const char* tensor, int dim, int64_t offset, int64_t size, int64_t extent, const char* place) {
    if (__builtin_expect(size > 0 && (offset < 0 || offset + size > extent), 0)) {
        if (dim < 0) {
            fail("an access to '%s' leaves the tensor: element %lld of %lld%s%s%s", tensor, static_cast<long long>(offset),
                 static_cast<long long>(extent), place[0] ? " [" : "", place, place[0] ? "]" : "");
        }
        fail("an access to '%s' leaves the tensor in dimension %d: offset %lld + extent %lld exceeds %lld%s%s%s", tensor,
             dim, static_cast<long long>(offset), static_cast<long long>(size), static_cast<long long>(extent),
             place[0] ? " [" : "", place, place[0] ? "]" : "");
    }
}

}  // namespace isa

// For generated code; it is defined only here, so that the same code compiles against other headers.
#define PTO_CHECK_WINDOW ::pto::isa::check_window

template <int64_t N0 = DYNAMIC, int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC>
struct Shape : isa::Extents<N0, N1, N2, N3, N4> {
    using isa::Extents<N0, N1, N2, N3, N4>::Extents;
    static constexpr int64_t staticShape[5] = {N0, N1, N2, N3, N4};
};

template <int64_t N0 = DYNAMIC, int64_t N1 = DYNAMIC, int64_t N2 = DYNAMIC, int64_t N3 = DYNAMIC, int64_t N4 = DYNAMIC>
struct Stride : isa::Extents<N0, N1, N2, N3, N4> {
    using isa::Extents<N0, N1, N2, N3, N4>::Extents;
    static constexpr int64_t staticStride[5] = {N0, N1, N2, N3, N4};
};

// Five run-time extents.
template <class A, class B, class C, class D, class E>
Shape(A, B, C, D, E) -> Shape<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;
template <class A, class B, class C, class D, class E>
Stride(A, B, C, D, E) -> Stride<DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC>;

struct GlobalTensorDim {
    static constexpr int DIM_0 = 0, DIM_1 = 1, DIM_2 = 2, DIM_3 = 3, DIM_4 = 4, TOTAL_DIM = 5;
};

template <class Element_, class Shape_, class Stride_, Layout Layout_ = Layout::ND>
struct GlobalTensor {
    using DType = Element_;
    using RawDType = Element_;
    using ShapeType = Shape_;
    using StrideType = Stride_;
    static constexpr Layout layout = Layout_;

    GlobalTensor() = default;
    GlobalTensor(Element_* data, const Shape_& shape = Shape_(), const Stride_& stride = Stride_())
        : shape_(shape), stride_(stride), data_(data) {}
    GlobalTensor(Element_* data, const Stride_& stride) : stride_(stride), data_(data) {}
    GlobalTensor(decltype(nullptr)) {}

    Element_* data() const { return data_; }
    void bind(Element_* data) { data_ = data; }
    int64_t GetShape(int dim) const { return shape_[dim]; }
    int64_t GetStride(int dim) const { return stride_[dim]; }
    template <int Dim>
    static constexpr int64_t GetShape() {
        return Shape_::kStatic[Dim];
    }
    template <int Dim>
    static constexpr int64_t GetStride() {
        return Stride_::kStatic[Dim];
    }

private:
    Shape_ shape_;
    Stride_ stride_;
    Element_* data_ = nullptr;
};

// Shapes and strides of whole two-dimensional tensors, as hand-written kernels use them.
template <class T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct TileShape2D : Shape<1, 1, 1, Rows, Cols> {
    using Shape<1, 1, 1, Rows, Cols>::Shape;
};
template <class T, int64_t Rows, int64_t Cols>
struct TileShape2D<T, Rows, Cols, Layout::NZ> : Shape<1, Cols / (32 / sizeof(T)), Rows / 16, 16, 32 / sizeof(T)> {
    using Shape<1, Cols / (32 / sizeof(T)), Rows / 16, 16, 32 / sizeof(T)>::Shape;
};
template <class T, int64_t Rows = DYNAMIC, int64_t Cols = DYNAMIC, Layout L = Layout::ND>
struct BaseShape2D : Stride<Rows * Cols, Rows * Cols, Rows * Cols, Cols, 1> {
    using Stride<Rows * Cols, Rows * Cols, Rows * Cols, Cols, 1>::Stride;
};
template <class T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::DN> : Stride<Rows * Cols, Rows * Cols, Rows * Cols, 1, Rows> {
    using Stride<Rows * Cols, Rows * Cols, Rows * Cols, 1, Rows>::Stride;
};
template <class T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::NZ>
    : Stride<Rows * Cols, Rows * (32 / sizeof(T)), 16 * (32 / sizeof(T)), 32 / sizeof(T), 1> {
    using Stride<Rows * Cols, Rows * (32 / sizeof(T)), 16 * (32 / sizeof(T)), 32 / sizeof(T), 1>::Stride;
};

namespace isa {

template <class T>
struct IsGlobal : std::false_type {};
template <class E, class S, class T, Layout L>
struct IsGlobal<GlobalTensor<E, S, T, L>> : std::true_type {};
template <class T>
inline constexpr bool kIsGlobal = IsGlobal<std::remove_cv_t<std::remove_reference_t<T>>>::value;

}  // namespace isa
}  // namespace pto
