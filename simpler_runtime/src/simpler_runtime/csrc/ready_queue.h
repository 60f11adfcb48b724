// Tasks whose producers have completed, in first-in first-out order, claimed block range by block range.
#pragma once
#include "notifier.h"
#include "task.h"

namespace simpler {

// A range of blocks of one task.
struct Claim {
    Task *task = nullptr;
    int32_t first = 0;
    int32_t count = 0;
};

class ReadyQueue {
public:
    explicit ReadyQueue(int workers) : workers_(workers) {}

    void push(Task *task) {
        task->next_ready = nullptr;
        SpinGuard guard(lock_);
        List &list = lists_[cohort(*task)];
        if (list.tail) list.tail->next_ready = task;
        else list.head = task;
        list.tail = task;
        size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    // Without `waiting_too`, tasks that may wait for others are left alone.
    bool pop(Claim &claim, bool waiting_too) {
        if (size_.load(std::memory_order_relaxed) == 0) return false;
        SpinGuard guard(lock_);
        for (List &list : lists_) {
            Task *task = list.head;
            if (!task || (task->may_wait && !waiting_too)) continue;
            // Guided chunks: few lock operations for wide tasks, single blocks at the end for balance.
            const int32_t left = task->block_num - task->next_block;
            int32_t count = task->sync_start ? left : left / (2 * workers_);
            if (count < 1) count = 1;
            claim = Claim{task, task->next_block, count};
            task->next_block += count;
            if (count == left) {
                list.head = task->next_ready;
                if (!list.head) list.tail = nullptr;
                size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
            }
            return true;
        }
        return false;
    }

    // Whether pop() would find something.
    bool available(bool waiting_too) {
        if (waiting_too || empty()) return !empty();
        SpinGuard guard(lock_);
        for (const List &list : lists_) {
            if (list.head && !list.head->may_wait) return true;
        }
        return false;
    }

    bool empty() const { return size_.load(std::memory_order_seq_cst) == 0; }
    int size() const { return size_.load(std::memory_order_relaxed); }

private:
    struct List {
        Task *head = nullptr;
        Task *tail = nullptr;
    };
    // Dispatch order: tasks that start together, mixed tasks, the rest.
    static int cohort(const Task &task) { return task.sync_start ? 0 : task.active_slots > 1 ? 1 : 2; }

    int workers_;
    alignas(64) SpinLock lock_;
    List lists_[3];
    alignas(64) std::atomic<int32_t> size_{0};
};

}  // namespace simpler
