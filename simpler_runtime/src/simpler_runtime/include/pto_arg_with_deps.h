// CoreTaskArgsWithDeps: task arguments that own the array of their dependencies.
#pragma once
#include "task_args.h"

template <uint32_t N = 16>
class CoreTaskArgsWithDeps : private CoreTaskArgs {
public:
    using CoreTaskArgs::add_inout;
    using CoreTaskArgs::add_input;
    using CoreTaskArgs::add_no_dep;
    using CoreTaskArgs::add_output;
    using CoreTaskArgs::add_scalar;
    using CoreTaskArgs::add_scalars;
    using CoreTaskArgs::add_scalars_i32;
    using CoreTaskArgs::allow_early_resolve;
    using CoreTaskArgs::dump;
    using CoreTaskArgs::error_msg;
    using CoreTaskArgs::has_error;
    using CoreTaskArgs::launch_spec;
    using CoreTaskArgs::predicate;
    using CoreTaskArgs::scalar;
    using CoreTaskArgs::scalar_count;
    using CoreTaskArgs::scalars;
    using CoreTaskArgs::set_allow_early_resolve;
    using CoreTaskArgs::set_error;
    using CoreTaskArgs::set_predicate;
    using CoreTaskArgs::set_task_timing_slot;
    using CoreTaskArgs::tag;
    using CoreTaskArgs::task_timing_slot;
    using CoreTaskArgs::tensor;
    using CoreTaskArgs::tensor_count;

    void copy_scalars_from(const CoreTaskArgsWithDeps &source, int offset, int n) {
        CoreTaskArgs::copy_scalars_from(source, offset, n);
    }

    template <typename... Ids>
    void add_dep(Ids... ids) {
        static_assert(sizeof...(Ids) > 0, "add_dep needs at least one task id");
        (push_dep(ids, DEP_WAIT | DEP_RETAIN), ...);
    }
#ifndef SIMPLER_HOST_BUILD_GRAPH
    // Ordering only: the producer's memory is not kept alive for this task.
    template <typename... Ids>
    void add_dep_wait(Ids... ids) {
        static_assert(sizeof...(Ids) > 0, "add_dep_wait needs at least one task id");
        (push_dep(ids, DEP_WAIT), ...);
    }
#endif

    void clear() {
        CoreTaskArgs::clear();
        count_ = 0;
    }
    void reset() {
        CoreTaskArgs::reset();
        count_ = 0;
    }

    simpler::TaskArgsView to_view() const {
        simpler::TaskArgsView view = CoreTaskArgs::to_view();
        view.deps = ids_;
        view.dep_kinds = kinds_;
        view.dep_count = count_;
        return view;
    }

private:
    void push_dep(PTO2TaskId id, DepFlags kind) {
        if (count_ == N) {
            set_error("add_dep: more dependencies than this args object holds");
            return;
        }
        ids_[count_] = id;
        kinds_[count_++] = kind;
    }

    PTO2TaskId ids_[N];
    DepFlags kinds_[N];
    uint32_t count_ = 0;
};
