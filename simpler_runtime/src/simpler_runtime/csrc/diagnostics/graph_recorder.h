// deps.json: every submitted task with its arguments, and the reason of every edge.
//
// It repeats dependency discovery with a table of its own that forgets nothing, so that edges to tasks that have
// already been recycled appear too.
#pragma once
#include <cstdio>
#include <unordered_map>
#include <vector>

#include "overlap.h"
#include "task.h"

namespace simpler {

class GraphRecorder {
public:
    // `args` as submitted, `task` as created.
    void task(const Task &task, const TaskArgsView &args, bool manual);
    void alloc(const Task &task);
    bool write(const char *path) const;

private:
    enum class Source : uint8_t { kExplicit, kCreator, kTensorMap };
    struct TaskRecord {
        uint64_t id;
        int32_t kernels[3];
        int16_t block_num;
        bool manual;
        uint32_t first_arg;
        uint32_t arg_count;
    };
    struct ArgRecord {
        TensorArgType tag;
        ChipTensor tensor;
    };
    struct EdgeRecord {
        uint64_t producer;
        uint64_t consumer;
        int32_t arg;
        Source source;
        uint8_t flags;
        Overlap overlap;
        uint32_t consumer_arg;  // index in args_
        Region region;          // of the producer, for table edges
    };
    struct Writer {
        uint64_t task;
        Region region;
    };

    std::vector<TaskRecord> tasks_;
    std::vector<ArgRecord> args_;
    std::vector<EdgeRecord> edges_;
    std::unordered_map<uint64_t, std::vector<Writer>> writers_;
};

}  // namespace simpler
