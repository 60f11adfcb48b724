// Which unfinished tasks wrote which region: the table behind automatic dependency discovery.
//
// Only the orchestrator thread touches it, so there are no locks. Entries leave when a covering writer replaces them or
// when their task is recycled. The writers of one allocation form a list; when it is long, a probe looks into a grid
// instead: an entry of up to 2^k bytes lies in cell (begin >> k) of grid k and reaches at most into the next one, so
// that loops over thousands of disjoint pieces stay linear.
#pragma once
#include <cstdlib>
#include <cstring>

#include "overlap.h"
#include "task.h"

namespace simpler {

struct AllocationWriters;

struct WriterEntry {
    Region region;
    Task *task;
    AllocationWriters *owner;      // null: unlinked
    WriterEntry *previous;         // of the same allocation
    WriterEntry *next;
    WriterEntry *previous_in_cell;
    WriterEntry *next_in_cell;
    WriterEntry *next_of_task;     // in the free list too
    uint64_t cell;
    uint32_t grid;
};

struct AllocationWriters {
    uint64_t address;              // buffer.addr: views of one allocation share it
    AllocationWriters *next;       // in the bucket; in the free list
    WriterEntry *first;
    uint32_t count;
    uint64_t grids;                // bit k: grid k has entries
    uint32_t grid_count[64];
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
        for (AllocationWriters *list : allocations_) free_list(list);
        free_list(free_allocations_);
    }

    uint32_t used() const { return used_; }
    uint32_t high_water() const { return high_water_; }
    void reset_high_water() { high_water_ = used_; }

    // Calls visit(entry, overlap) for every writer whose region meets `tensor`; visit returns true to drop the entry.
    template <typename Visit>
    void lookup(const ChipTensor &tensor, Visit visit) {
        AllocationWriters *writers = find(tensor.buffer.addr);
        if (!writers) return;
        const Region probe = Region::of(tensor);
        const auto consider = [&](WriterEntry &entry) {
            const Overlap kind = overlap(probe, entry.region);
            if (kind != Overlap::kNone && visit(entry, kind)) unlink(entry);
        };
        // A newer version depends on every older writer, wherever it wrote.
        if (writers->count <= kShortList || probe.version > 0 || !lookup_in_grids(*writers, probe, consider)) {
            for (WriterEntry *entry = writers->first, *next; entry; entry = next) {
                next = entry->next;
                consider(*entry);
            }
        }
        if (writers->count == 0) release(writers);
    }

    void insert(const ChipTensor &tensor, Task &task) {
        WriterEntry *entry = take();
        entry->region = Region::of(tensor);
        entry->task = &task;
        entry->next_of_task = task.writer_entries;
        task.writer_entries = entry;

        AllocationWriters *writers = find(tensor.buffer.addr);
        if (!writers) writers = create(tensor.buffer.addr);
        entry->owner = writers;
        entry->previous = nullptr;
        entry->next = writers->first;
        if (writers->first) writers->first->previous = entry;
        writers->first = entry;
        ++writers->count;

        const uint64_t size = get_element_size(entry->region.dtype);
        const uint64_t begin = entry->region.begin * size, bytes = (entry->region.end - entry->region.begin) * size;
        entry->grid = bytes > 1 ? 64 - static_cast<uint32_t>(__builtin_clzll(bytes - 1)) : 0;
        entry->cell = begin >> entry->grid;
        writers->grids |= 1ull << entry->grid;
        ++writers->grid_count[entry->grid];
        WriterEntry *&head = cells_[cell_bucket(*writers, entry->grid, entry->cell)];
        entry->previous_in_cell = nullptr;
        entry->next_in_cell = head;
        if (head) head->previous_in_cell = entry;
        head = entry;
    }

    void remove_task(Task &task) {
        for (WriterEntry *entry = task.writer_entries, *next; entry; entry = next) {
            next = entry->next_of_task;
            if (AllocationWriters *writers = entry->owner) {
                unlink(*entry);
                if (writers->count == 0) release(writers);
            }
            entry->next_of_task = free_;
            free_ = entry;
            --used_;
        }
        task.writer_entries = nullptr;
    }

private:
    static constexpr uint32_t kBuckets = 8192;
    static constexpr uint32_t kChunkEntries = 512;
    static constexpr uint32_t kShortList = 8;
    struct Chunk {
        Chunk *next;
        WriterEntry entries[kChunkEntries];
    };

    static uint32_t bucket(uint64_t key) { return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 51); }
    static uint32_t cell_bucket(const AllocationWriters &writers, uint32_t grid, uint64_t cell) {
        return bucket(writers.address + cell * 0xD6E8FEB86659FD93ull + grid);
    }

    // False, without a visit, when walking the list is cheaper.
    template <typename Consider>
    bool lookup_in_grids(AllocationWriters &writers, const Region &probe, Consider consider) {
        if (probe.begin == probe.end) return true;
        const uint64_t size = get_element_size(probe.dtype);
        const uint64_t begin = probe.begin * size, last = probe.end * size - 1;
        uint64_t cells = 0;
        for (uint64_t grids = writers.grids; grids; grids &= grids - 1) {
            const int grid = __builtin_ctzll(grids);
            cells += (last >> grid) - (begin >> grid) + 2;
        }
        if (cells >= writers.count) return false;
        for (uint64_t grids = writers.grids; grids; grids &= grids - 1) {
            const uint32_t grid = static_cast<uint32_t>(__builtin_ctzll(grids));
            const uint64_t first = begin >> grid;
            for (uint64_t cell = first ? first - 1 : 0; cell <= last >> grid; ++cell) {
                for (WriterEntry *entry = cells_[cell_bucket(writers, grid, cell)], *next; entry; entry = next) {
                    next = entry->next_in_cell;
                    if (entry->owner == &writers && entry->grid == grid && entry->cell == cell) consider(*entry);
                }
            }
        }
        return true;
    }

    void unlink(WriterEntry &entry) {
        AllocationWriters &writers = *entry.owner;
        if (entry.previous) entry.previous->next = entry.next;
        else writers.first = entry.next;
        if (entry.next) entry.next->previous = entry.previous;
        if (entry.previous_in_cell) entry.previous_in_cell->next_in_cell = entry.next_in_cell;
        else cells_[cell_bucket(writers, entry.grid, entry.cell)] = entry.next_in_cell;
        if (entry.next_in_cell) entry.next_in_cell->previous_in_cell = entry.previous_in_cell;
        if (--writers.grid_count[entry.grid] == 0) writers.grids &= ~(1ull << entry.grid);
        --writers.count;
        entry.owner = nullptr;
    }

    AllocationWriters *find(uint64_t address) const {
        AllocationWriters *writers = allocations_[bucket(address)];
        while (writers && writers->address != address) writers = writers->next;
        return writers;
    }
    AllocationWriters *create(uint64_t address) {
        AllocationWriters *writers = free_allocations_;
        if (writers) free_allocations_ = writers->next;
        else writers = static_cast<AllocationWriters *>(std::calloc(1, sizeof(AllocationWriters)));
        AllocationWriters *&head = allocations_[bucket(address)];
        writers->address = address;
        writers->next = head;
        head = writers;
        return writers;
    }
    // All counts are zero here, which is how create() expects the record.
    void release(AllocationWriters *writers) {
        AllocationWriters **link = &allocations_[bucket(writers->address)];
        while (*link != writers) link = &(*link)->next;
        *link = writers->next;
        writers->next = free_allocations_;
        free_allocations_ = writers;
    }
    static void free_list(AllocationWriters *writers) {
        while (writers) {
            AllocationWriters *next = writers->next;
            std::free(writers);
            writers = next;
        }
    }

    WriterEntry *take() {
        if (!free_) {
            Chunk *chunk = static_cast<Chunk *>(std::malloc(sizeof(Chunk)));
            chunk->next = chunks_;
            chunks_ = chunk;
            for (WriterEntry &entry : chunk->entries) {
                entry.next_of_task = free_;
                free_ = &entry;
            }
        }
        WriterEntry *entry = free_;
        free_ = entry->next_of_task;
        if (++used_ > high_water_) high_water_ = used_;
        return entry;
    }

    AllocationWriters *allocations_[kBuckets] = {};
    WriterEntry *cells_[kBuckets] = {};
    AllocationWriters *free_allocations_ = nullptr;
    WriterEntry *free_ = nullptr;
    Chunk *chunks_ = nullptr;
    uint32_t used_ = 0;
    uint32_t high_water_ = 0;
};

}  // namespace simpler
