// Storage of live tasks: exact-size blocks, recycled last-in first-out so that hot memory is used again.
#pragma once
#include <cstdlib>

#include "task.h"

namespace simpler {

class TaskStorage {
public:
    ~TaskStorage() {
        while (chunks_) {
            Chunk *next = chunks_->next;
            std::free(chunks_);
            chunks_ = next;
        }
    }

    // Cache-line aligned; `bytes` is rounded up to whole lines.
    void *allocate(uint32_t &bytes) {
        bytes = (bytes + kLine - 1) / kLine * kLine;
        const uint32_t index = bytes / kLine;
        if (index >= kClasses) return std::aligned_alloc(kLine, bytes);
        Free *&list = free_[index];
        if (list) {
            void *block = list;
            list = list->next;
            return block;
        }
        if (left_ < bytes) grow();
        void *block = cursor_;
        cursor_ += bytes;
        left_ -= bytes;
        return block;
    }

    void release(void *block, uint32_t bytes) {
        const uint32_t index = bytes / kLine;
        if (index >= kClasses) {
            std::free(block);
            return;
        }
        Free *entry = static_cast<Free *>(block);
        entry->next = free_[index];
        free_[index] = entry;
    }

private:
    static constexpr uint32_t kLine = 64;
    static constexpr uint32_t kClasses = 256;
    static constexpr uint32_t kChunkBytes = 256 * 1024;
    struct Free { Free *next; };
    struct alignas(64) Chunk { Chunk *next; };

    void grow() {
        Chunk *chunk = static_cast<Chunk *>(std::aligned_alloc(kLine, kChunkBytes));
        chunk->next = chunks_;
        chunks_ = chunk;
        cursor_ = reinterpret_cast<unsigned char *>(chunk) + sizeof(Chunk);
        left_ = kChunkBytes - sizeof(Chunk);
    }

    Free *free_[kClasses] = {};
    Chunk *chunks_ = nullptr;
    unsigned char *cursor_ = nullptr;
    uint32_t left_ = 0;
};

}  // namespace simpler
