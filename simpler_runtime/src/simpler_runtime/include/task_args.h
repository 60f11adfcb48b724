// Arguments of one task: pointers to tensors and create-infos, scalars, launch settings and dependencies.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "tensor_create_info.h"

enum class TensorArgType : int32_t { INPUT = 0, OUTPUT = 1, INOUT = 2, OUTPUT_EXISTING = 3, NO_DEP = 4 };

enum class PredicateOp : uint8_t { NONE = 0, EQ, NE, GT, LT, GE, LE };

struct CorePredicateOperand {
    const ChipTensor *tensor = nullptr;
    uint32_t ndims = 0;
    uint32_t indices[MAX_TENSOR_DIMS] = {};
};

// The task runs only when `operand op target` holds at dispatch. It adds no dependency by itself.
struct CoreTaskPredicate {
    CorePredicateOperand operand;
    PredicateOp op = PredicateOp::NONE;
    int64_t target = 0;
};

enum DepFlags : uint8_t { DEP_NONE = 0, DEP_WAIT = 1, DEP_RETAIN = 2 };
constexpr DepFlags operator|(DepFlags a, DepFlags b) { return static_cast<DepFlags>(uint8_t(a) | uint8_t(b)); }
constexpr DepFlags operator&(DepFlags a, DepFlags b) { return static_cast<DepFlags>(uint8_t(a) & uint8_t(b)); }
inline DepFlags &operator|=(DepFlags &a, DepFlags b) { return a = a | b; }
constexpr bool dep_has_wait(DepFlags flags) { return (flags & DEP_WAIT) != 0; }
constexpr bool dep_has_retain(DepFlags flags) { return (flags & DEP_RETAIN) != 0; }

// SPMD width. The two architectures spell the accessor differently; both spellings work on both.
class PTO2LaunchSpec {
public:
    void set_block_num(int16_t count) { blocks_ = count; }
    void set_core_num(int16_t count) { blocks_ = count; }
    int16_t block_num() const { return blocks_; }
    int16_t core_num() const { return blocks_; }
    void set_require_sync_start(bool value) { sync_start_ = value; }
    bool require_sync_start() const { return sync_start_; }

private:
    int16_t blocks_ = 1;
    bool sync_start_ = false;
};

// One argument slot: an existing tensor or the description of one to allocate.
class TensorRef {
public:
    explicit TensorRef(const void *object) : object_(object) {}
    const ChipTensor &ref() const { return *static_cast<const ChipTensor *>(object_); }
    const TensorCreateInfo &create_info() const { return *static_cast<const TensorCreateInfo *>(object_); }

private:
    const void *object_;
};

namespace simpler {

// What a submit hands to the runtime; independent of the capacities of the Arg object it came from.
struct TaskArgsView {
    const void *const *objects;
    const uint8_t *tags;  // TensorArgType
    const uint64_t *scalars;
    const uint8_t *scalar_types;  // DataType
    const PTO2TaskId *deps;
    const DepFlags *dep_kinds;  // null: every dependency is WAIT | RETAIN
    const CoreTaskPredicate *predicate;
    const char *error;          // null: no error
    uint32_t dep_count;
    int32_t tensor_count;
    int32_t scalar_count;
    int32_t timing_slot;
    int16_t block_num;
    bool sync_start;
    bool early_resolve;
    uint64_t dump_tensors;      // bit i: tensor argument i is selected for the args dump
    uint64_t dump_scalars;
    uint64_t dump_ambiguous;    // bit i: the variable of scalar i was added more than once
};

// Element type that a scalar of C++ type T is reported as.
template <typename T>
constexpr DataType scalar_type() {
    if constexpr (std::is_same<T, bool>::value) return DataType::BOOL;
    else if constexpr (std::is_same<T, float>::value) return DataType::FLOAT32;
    else if constexpr (std::is_floating_point<T>::value || !(std::is_integral<T>::value || std::is_enum<T>::value)) {
        return sizeof(T) == 2 ? DataType::FLOAT16 : DataType::UINT64;
    } else {
        constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
        switch (sizeof(T)) {
            case 1: return is_signed ? DataType::INT8 : DataType::UINT8;
            case 2: return is_signed ? DataType::INT16 : DataType::UINT16;
            case 4: return is_signed ? DataType::INT32 : DataType::UINT32;
            default: return is_signed ? DataType::INT64 : DataType::UINT64;
        }
    }
}

template <typename T>
using plain = std::remove_cv_t<std::remove_reference_t<T>>;

}  // namespace simpler

template <int MaxT, int MaxS>
class Arg {
public:
    Arg() = default;
    Arg(const Arg &) = delete;
    Arg &operator=(const Arg &) = delete;

    // The adders keep pointers, so every argument must be an lvalue that lives until submit returns.
    template <typename... Ts>
    void add_input(Ts &&...tensors) { add_tensors<ChipTensor>(TensorArgType::INPUT, tensors...); check_lvalues<Ts...>(); }
    template <typename... Ts>
    void add_inout(Ts &&...tensors) { add_tensors<ChipTensor>(TensorArgType::INOUT, tensors...); check_lvalues<Ts...>(); }
    template <typename... Ts>
    void add_no_dep(Ts &&...tensors) { add_tensors<ChipTensor>(TensorArgType::NO_DEP, tensors...); check_lvalues<Ts...>(); }

    // All create-infos (the runtime allocates them) or all existing tensors.
    template <typename First, typename... Rest>
    void add_output(First &&first, Rest &&...rest) {
        check_lvalues<First, Rest...>();
        if constexpr (std::is_same<simpler::plain<First>, TensorCreateInfo>::value) {
            add_tensors<TensorCreateInfo>(TensorArgType::OUTPUT, first, rest...);
        } else {
            add_tensors<ChipTensor>(TensorArgType::OUTPUT_EXISTING, first, rest...);
        }
    }

    template <typename... Ts>
    void add_scalar(const Ts &...values) {
        static_assert(((std::is_arithmetic<Ts>::value || std::is_enum<Ts>::value || sizeof(Ts) <= 2) && ...),
                      "add_scalar takes numbers and enums");
        (push_scalar(to_u64(values), simpler::scalar_type<Ts>(), &values), ...);
    }
    void add_scalars(const uint64_t *values, int n) {
        for (int i = 0; i < n; ++i) push_scalar(values[i], DataType::UINT64, values + i);
    }
    void add_scalars_i32(const int32_t *values, int n) {
        for (int i = 0; i < n; ++i) push_scalar(static_cast<uint32_t>(values[i]), DataType::INT32, values + i);
    }
    void copy_scalars_from(const Arg &source, int offset, int n) {
        if (offset < 0 || n < 0 || offset + n > source.scalar_count_) {
            set_error("copy_scalars_from: range outside the scalars of the source");
            return;
        }
        for (int i = 0; i < n; ++i) {
            const int from = offset + i;
            push_scalar(source.scalars_[from], static_cast<DataType>(source.scalar_types_[from]), source.scalar_origins_[from]);
        }
    }

    void set_dependencies(const PTO2TaskId *ids, uint32_t n) { bind_dependencies(ids, nullptr, n); }
    void set_dependencies_with_kinds(const PTO2TaskId *ids, const DepFlags *kinds, uint32_t n) {
        if (n > 0 && kinds == nullptr) {
            set_error("set_dependencies_with_kinds: kinds is null");
            return;
        }
        bind_dependencies(ids, kinds, n);
    }
    uint32_t explicit_dep_count() const { return dep_count_; }
    PTO2TaskId explicit_dep(uint32_t i) const { return deps_[i]; }
    DepFlags explicit_dep_kind(uint32_t i) const { return dep_kinds_ ? dep_kinds_[i] : DEP_WAIT | DEP_RETAIN; }
    const PTO2TaskId *explicit_deps_data() const { return deps_; }

    void set_allow_early_resolve(bool value = true) { early_resolve_ = value; }
    bool allow_early_resolve() const { return early_resolve_; }
    void set_predicate(const CoreTaskPredicate &predicate) { predicate_ = predicate; }
    const CoreTaskPredicate &predicate() const { return predicate_; }
    void set_task_timing_slot(int32_t slot) {
        if (slot < 0 || slot >= NUM_TASK_TIMING_SLOTS) {
            set_error("task timing slot must be in 0..15");
            return;
        }
        timing_slot_ = slot;
    }
    int32_t task_timing_slot() const { return timing_slot_; }

    // Marks arguments (all when none is named) for the selective args dump.
    void dump() {
        dump_tensors_ = tensor_count_ >= 64 ? ~0ull : (1ull << tensor_count_) - 1;
        dump_scalars_ = scalar_count_ >= 64 ? ~0ull : (1ull << scalar_count_) - 1;
    }
    template <typename First, typename... Rest>
    void dump(First &&first, Rest &&...rest) {
        check_lvalues<First, Rest...>();
        mark_dump(first);
        (mark_dump(rest), ...);
    }

    int tensor_count() const { return tensor_count_; }
    int scalar_count() const { return scalar_count_; }
    TensorRef tensor(int i) const {
        SIMPLER_REQUIRE(i >= 0 && i < tensor_count_, "tensor index out of range");
        return TensorRef(objects_[i]);
    }
    TensorArgType tag(int i) const { return static_cast<TensorArgType>(tags_[i]); }
    uint64_t scalar(int i) const {
        SIMPLER_REQUIRE(i >= 0 && i < scalar_count_, "scalar index out of range");
        return scalars_[i];
    }
    const uint64_t *scalars() const { return scalars_; }

    void set_error(const char *message) {
        if (has_error) return;
        has_error = true;
        error_msg = message;
    }
    void clear() {
        tensor_count_ = 0;
        scalar_count_ = 0;
        dep_count_ = 0;
        deps_ = nullptr;
        dep_kinds_ = nullptr;
        predicate_.op = PredicateOp::NONE;
        early_resolve_ = false;
        timing_slot_ = TASK_TIMING_SLOT_NONE;
        dump_tensors_ = 0;
        dump_scalars_ = 0;
        dump_ambiguous_ = 0;
    }
    void reset() {
        clear();
        has_error = false;
        error_msg = nullptr;
    }

    simpler::TaskArgsView to_view() const {
        return simpler::TaskArgsView{objects_, tags_, scalars_, scalar_types_, deps_, dep_kinds_,
                                     predicate_.op == PredicateOp::NONE ? nullptr : &predicate_,
                                     has_error ? (error_msg ? error_msg : "invalid arguments") : nullptr,
                                     dep_count_, tensor_count_, scalar_count_, timing_slot_,
                                     launch_spec.block_num(), launch_spec.require_sync_start(), early_resolve_,
                                     dump_tensors_, dump_scalars_, dump_ambiguous_};
    }

    PTO2LaunchSpec launch_spec;
    bool has_error = false;
    const char *error_msg = nullptr;

private:
    template <typename... Ts>
    static constexpr void check_lvalues() {
        static_assert((std::is_lvalue_reference<Ts>::value && ...),
                      "arguments are kept by pointer: pass a named object, not a temporary");
    }

    template <typename Expected, typename... Ts>
    void add_tensors(TensorArgType tag, Ts &...objects) {
        static_assert((std::is_same<simpler::plain<Ts>, Expected>::value && ...),
                      "one call adds either tensors or create-infos of one kind");
        (push_tensor(&objects, tag), ...);
    }
    void push_tensor(const void *object, TensorArgType tag) {
        if (__builtin_expect(scalar_count_ > 0, 0)) {
            set_error("tensor added after a scalar: all tensors must be added before any scalars");
            return;
        }
        if (__builtin_expect(tensor_count_ >= MaxT, 0)) {
            set_capacity_error("tensor", MaxT);
            return;
        }
        objects_[tensor_count_] = object;
        tags_[tensor_count_++] = static_cast<uint8_t>(tag);
    }
    void push_scalar(uint64_t bits, DataType type, const void *origin) {
        if (__builtin_expect(scalar_count_ >= MaxS, 0)) {
            set_capacity_error("scalar", MaxS);
            return;
        }
        scalar_types_[scalar_count_] = static_cast<uint8_t>(type);
        scalar_origins_[scalar_count_] = origin;
        scalars_[scalar_count_++] = bits;
    }
    __attribute__((cold, noinline)) void set_capacity_error(const char *kind, int limit) {
        if (has_error) return;
        std::snprintf(capacity_text_, sizeof capacity_text_, "Too many %s args (max %d)", kind, limit);
        set_error(capacity_text_);
    }
    void bind_dependencies(const PTO2TaskId *ids, const DepFlags *kinds, uint32_t n) {
        if (n == 0) {
            deps_ = nullptr;
            dep_kinds_ = nullptr;
            dep_count_ = 0;
        } else if (ids == nullptr) {
            set_error("set_dependencies: the id array is null");
        } else if (dep_count_ != 0) {
            set_error("set_dependencies: called twice with dependencies");
        } else {
            deps_ = ids;
            dep_kinds_ = kinds;
            dep_count_ = n;
        }
    }
    template <typename T>
    void mark_dump(const T &object) {
        if constexpr (std::is_same<T, ChipTensor>::value || std::is_same<T, TensorCreateInfo>::value) {
            bool found = false;
            for (int i = 0; i < tensor_count_; ++i) {
                if (objects_[i] != static_cast<const void *>(&object)) continue;
                if (i < 64) dump_tensors_ |= 1ull << i;
                found = true;
            }
            if (!found) set_error("dump: the tensor is not an argument of this object");
        } else {
            // The first scalar that was added from this variable; more of them make the choice ambiguous.
            int first = -1;
            for (int i = 0; i < scalar_count_ && i < 64; ++i) {
                if (scalar_origins_[i] != static_cast<const void *>(&object)) continue;
                if (first < 0) dump_scalars_ |= 1ull << (first = i);
                else dump_ambiguous_ |= 1ull << first;
            }
            const bool found = first >= 0;
            if (!found) set_error("dump: the scalar is not an argument of this object");
        }
    }

    // The arrays stay uninitialised on purpose: building an args object is on the submission path.
    const void *objects_[MaxT];
    uint64_t scalars_[MaxS];
    const void *scalar_origins_[MaxS];  // only compared, never read through
    uint8_t tags_[MaxT];
    uint8_t scalar_types_[MaxS];
    int32_t tensor_count_ = 0;
    int32_t scalar_count_ = 0;
    const PTO2TaskId *deps_ = nullptr;
    const DepFlags *dep_kinds_ = nullptr;
    uint32_t dep_count_ = 0;
    int32_t timing_slot_ = TASK_TIMING_SLOT_NONE;
    bool early_resolve_ = false;
    uint64_t dump_tensors_ = 0;
    uint64_t dump_scalars_ = 0;
    uint64_t dump_ambiguous_ = 0;
    CoreTaskPredicate predicate_;
    char capacity_text_[48];
};

using CoreTaskArgs = Arg<CORE_MAX_TENSOR_ARGS, CORE_MAX_SCALAR_ARGS>;
using ChipTaskArgs = Arg<CHIP_MAX_TENSOR_ARGS, CHIP_MAX_SCALAR_ARGS>;
using GraphTaskArgs = Arg<GRAPH_MAX_TENSOR_ARGS, GRAPH_MAX_SCALAR_ARGS>;
