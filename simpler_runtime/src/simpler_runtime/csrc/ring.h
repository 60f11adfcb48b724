// One ring: a window of live tasks and a circular heap for their outputs, both reclaimed in submission order.
#pragma once
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "task.h"

namespace simpler {

// Heap positions are byte counts that only grow; the offset in the buffer is position modulo capacity.
class HeapRing {
public:
    ~HeapRing() { resize(0); }

    bool resize(uint64_t bytes) {
        if (base_ && bytes == capacity_) return true;
        if (base_) munmap(base_, mapped_);
        base_ = nullptr;
        capacity_ = bytes;
        head_ = tail_ = 0;
        if (!bytes) return true;
        mapped_ = (bytes + 4095) / 4096 * 4096;
        void *memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return false;
        base_ = static_cast<unsigned char *>(memory);
        return true;
    }

    uint64_t capacity() const { return capacity_; }
    uint64_t used() const { return head_ - tail_; }
    uint64_t head() const { return head_; }

    // Contiguous block of `bytes`, or null when the live blocks leave no room for it.
    unsigned char *allocate(uint64_t bytes) {
        if (bytes > capacity_) return nullptr;
        if (head_ == tail_) rewind();
        uint64_t start = head_;
        const uint64_t offset = start % capacity_;
        if (offset + bytes > capacity_) start += capacity_ - offset;  // a block never wraps around the end
        if (start + bytes - tail_ > capacity_) return nullptr;
        head_ = start + bytes;
        allocated_ += bytes;
        return base_ + start % capacity_;
    }
    // Tasks without outputs carry positions from before a rewind: the tail never goes back.
    void reclaim_to(uint64_t position, uint64_t allocated) {
        if (position > tail_) tail_ = position;
        reclaimed_ = allocated;
    }
    // Bytes given out and taken back since the run began; unlike positions they do not jump at a rewind.
    uint64_t allocated() const { return allocated_; }
    uint64_t reclaimed() const { return reclaimed_; }
    void restart_counts() { allocated_ = reclaimed_ = 0; }

private:
    // An empty heap starts again at offset 0, which keeps the touched memory small.
    void rewind() { head_ = tail_ = (head_ + capacity_ - 1) / capacity_ * capacity_; }

    unsigned char *base_ = nullptr;
    uint64_t capacity_ = 0;
    uint64_t mapped_ = 0;
    uint64_t head_ = 0;
    uint64_t tail_ = 0;
    uint64_t allocated_ = 0;
    uint64_t reclaimed_ = 0;
};

class Ring {
public:
    ~Ring() { std::free(slots_); }

    bool configure(uint32_t window, uint64_t heap_bytes, uint32_t dep_pool) {
        if (window != window_) {
            std::free(slots_);
            slots_ = static_cast<Task **>(std::calloc(window, sizeof(Task *)));
            window_ = window;
            if (!slots_) return false;
        }
        dep_capacity = dep_pool;
        return heap.resize(heap_bytes);
    }

    uint32_t window() const { return window_; }
    uint32_t live() const { return head_ - tail_; }
    uint32_t head() const { return head_; }
    uint32_t tail() const { return tail_; }
    bool has_slot() const { return live() < window_ - 1; }
    Task *oldest() const { return live() ? slots_[tail_ & (window_ - 1)] : nullptr; }

    // Null: the id was never issued (`issued` false) or its task has been recycled (`issued` true).
    Task *find(uint32_t local, bool &issued) const {
        issued = local - first_ < head_ - first_;
        return local - tail_ < head_ - tail_ ? slots_[local & (window_ - 1)] : nullptr;
    }
    uint32_t next_local() const { return head_; }
    void push(Task *task) {
        slots_[head_++ & (window_ - 1)] = task;
        if (live() > window_high_water) window_high_water = live();
    }
    Task *pop() {
        Task *task = slots_[tail_++ & (window_ - 1)];
        heap.reclaim_to(task->heap_end, task->heap_allocated);
        dep_used -= task->dep_entries;
        dep_tail += task->dep_entries;
        return task;
    }
    void restart() {
        head_ = tail_ = first_ = 0;
        window_high_water = 0;
        heap_high_water = 0;
        dep_high_water = 0;
        dep_head = dep_tail = 0;
        heap.restart_counts();
    }

    HeapRing heap;
    uint32_t dep_capacity = 0;
    uint32_t dep_used = 0;
    uint64_t dep_head = 0;
    uint64_t dep_tail = 0;
    uint32_t window_high_water = 0;
    uint64_t heap_high_water = 0;
    uint32_t dep_high_water = 0;

private:
    Task **slots_ = nullptr;
    uint32_t window_ = 0;
    uint32_t head_ = 0;
    uint32_t tail_ = 0;
    uint32_t first_ = 0;
};

}  // namespace simpler
