// args_dump/: the arguments of tasks before dispatch and after completion.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "notifier.h"
#include "task.h"

namespace simpler {

class ArgsDump {
public:
    // Level 1: marked arguments; 2: all; 3: metadata of all, payload of the marked ones.
    ArgsDump(int level, std::string folder) : level_(level), folder_(std::move(folder)) {}
    ~ArgsDump() {
        if (payload_) std::fclose(payload_);
    }
    ArgsDump(const ArgsDump &) = delete;
    ArgsDump &operator=(const ArgsDump &) = delete;

    void before_dispatch(const Task &task) { capture(task, true); }
    void after_completion(const Task &task) { capture(task, false); }
    bool write(const char *run_dir);

private:
    struct Record {
        uint64_t task;
        int32_t kernels[3];
        const char *role;
        bool before;
        int32_t index;
        bool scalar;
        DataType dtype;
        bool ambiguous;
        uint64_t value;
        ChipTensor tensor;
        uint64_t offset;
        uint64_t size;
    };
    void capture(const Task &task, bool before);
    bool store(const ChipTensor &tensor, Record &record);

    int level_;
    std::string folder_;
    SpinLock lock_;
    std::vector<Record> records_;
    std::FILE *payload_ = nullptr;
    uint64_t written_ = 0;
};

}  // namespace simpler
