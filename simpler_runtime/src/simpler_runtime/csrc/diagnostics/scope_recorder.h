// scope_stats.jsonl: ring positions at every scope boundary.
#pragma once
#include <cstdio>
#include <vector>

#include "diagnostics.h"

namespace simpler {

class ScopeRecorder {
public:
    void boundary(const ScopeBoundary &at) {
        const Ring &ring = *at.ring;
        records_.push_back(Record{at.file, at.line, at.begin, at.depth, at.ring_number, ring.tail(), ring.head(),
                                  ring.heap.reclaimed(), ring.heap.allocated(), ring.dep_tail, ring.dep_head,
                                  at.map_entries});
    }
    bool write(const char *path, bool fatal, const Ring *rings, int ring_count, uint32_t map_capacity) const;

private:
    struct Record {
        const char *file;
        int line;
        bool begin;
        int depth;
        int ring;
        uint32_t window_start, window_end;
        uint64_t heap_start, heap_end;
        uint64_t dep_start, dep_end;
        uint32_t map_entries;
    };
    std::vector<Record> records_;
};

}  // namespace simpler
