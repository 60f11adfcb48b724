// Which unfinished tasks wrote which region: the table behind automatic dependency discovery.
//
// Only the orchestrator thread touches it, so there are no locks. Entries leave when a covering writer replaces
// them or when their task is recycled.
#pragma once
#include <cstdlib>

#include "overlap.h"
#include "task.h"

namespace simpler {

struct WriterEntry {
    Region region;
    uint64_t address;        // buffer.addr: views of one allocation share it
    Task *task;
    WriterEntry *previous;
    WriterEntry *next;       // in the bucket; in the free list
    WriterEntry *next_of_task;
    bool linked;
};

class TensorMap {
public:
    static constexpr uint32_t kCapacity = PTO2_TENSORMAP_POOL_SIZE;

    ~TensorMap() {
        while (chunks_) {
            Chunk *next = chunks_->next;
            std::free(chunks_);
            chunks_ = next;
        }
    }

    uint32_t used() const { return used_; }
    bool full() const { return used_ >= kCapacity; }
    uint32_t high_water() const { return high_water_; }
    void reset_high_water() { high_water_ = used_; }

    // Calls visit(entry, overlap) for every writer whose region meets `tensor`; visit returns true to drop the entry.
    template <typename Visit>
    void lookup(const ChipTensor &tensor, Visit visit) {
        const Region probe = Region::of(tensor);
        for (WriterEntry *entry = buckets_[bucket(tensor.buffer.addr)], *next; entry; entry = next) {
            next = entry->next;
            if (entry->address != tensor.buffer.addr) continue;
            const Overlap kind = overlap(probe, entry->region);
            if (kind != Overlap::kNone && visit(*entry, kind)) unlink(*entry);
        }
    }

    void insert(const ChipTensor &tensor, Task &task) {
        WriterEntry *entry = take();
        entry->region = Region::of(tensor);
        entry->address = tensor.buffer.addr;
        entry->task = &task;
        entry->next_of_task = task.writer_entries;
        entry->linked = true;
        task.writer_entries = entry;
        WriterEntry *&head = buckets_[bucket(tensor.buffer.addr)];
        entry->previous = nullptr;
        entry->next = head;
        if (head) head->previous = entry;
        head = entry;
    }

    void remove_task(Task &task) {
        for (WriterEntry *entry = task.writer_entries, *next; entry; entry = next) {
            next = entry->next_of_task;
            if (entry->linked) unlink(*entry);
            entry->next = free_;
            free_ = entry;
            --used_;
        }
        task.writer_entries = nullptr;
    }

private:
    static constexpr uint32_t kBuckets = 8192;
    static constexpr uint32_t kChunkEntries = 512;
    struct Chunk {
        Chunk *next;
        WriterEntry entries[kChunkEntries];
    };

    static uint32_t bucket(uint64_t address) { return static_cast<uint32_t>((address * 0x9E3779B97F4A7C15ull) >> 51); }

    void unlink(WriterEntry &entry) {
        if (entry.previous) entry.previous->next = entry.next;
        else buckets_[bucket(entry.address)] = entry.next;
        if (entry.next) entry.next->previous = entry.previous;
        entry.linked = false;
    }
    WriterEntry *take() {
        if (!free_) {
            Chunk *chunk = static_cast<Chunk *>(std::malloc(sizeof(Chunk)));
            chunk->next = chunks_;
            chunks_ = chunk;
            for (WriterEntry &entry : chunk->entries) {
                entry.next = free_;
                free_ = &entry;
            }
        }
        WriterEntry *entry = free_;
        free_ = entry->next;
        if (++used_ > high_water_) high_water_ = used_;
        return entry;
    }

    WriterEntry *buckets_[kBuckets] = {};
    WriterEntry *free_ = nullptr;
    Chunk *chunks_ = nullptr;
    uint32_t used_ = 0;
    uint32_t high_water_ = 0;
};

}  // namespace simpler
