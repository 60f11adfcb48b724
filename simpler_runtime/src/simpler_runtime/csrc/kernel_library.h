// Loaded code of one callable: the orchestration library and its kernels.
#pragma once
#include <dlfcn.h>
#include <elf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "pto_orchestration_api.h"
#include "simulated_core.h"

namespace simpler {

using KernelFunction = void (*)(int64_t *);

struct Kernel {
    KernelFunction entry;
    int32_t func_id;
    sim::CoreKind core;
    bool may_wait;  // it calls simpler_core_yield(), which is how kernels wait for something in memory
    char name[120];
};

class Callable {
public:
    using ConfigFunction = PTO2OrchestrationConfig (*)(const ChipTaskArgs &);
    using EntryFunction = void (*)(const ChipTaskArgs &);
    using BindFunction = void (*)(PTO2Runtime *);
    static constexpr int kMaxKernels = 1024;

    ConfigFunction config = nullptr;
    EntryFunction entry = nullptr;
    BindFunction bind = nullptr;

    Callable() = default;
    Callable(const Callable &) = delete;
    Callable &operator=(const Callable &) = delete;
    // The libraries stay loaded: unloading code that a thread-local destructor may still need is not safe.
    ~Callable() {
        for (Kernel *kernel : kernels_) std::free(kernel);
    }

    const Kernel *find(int32_t func_id) const {
        return func_id >= 0 && func_id < kMaxKernels ? kernels_[func_id] : nullptr;
    }

    // False: `error` says which file or symbol is at fault.
    bool load_orchestration(const char *path, const char *entry_name, const char *config_name, char *error, size_t size) {
        void *library = open(path, error, size);
        if (!library) return false;
        entry = reinterpret_cast<EntryFunction>(symbol(library, path, entry_name, error, size));
        config = reinterpret_cast<ConfigFunction>(symbol(library, path, config_name, error, size));
        bind = reinterpret_cast<BindFunction>(symbol(library, path, "framework_bind_runtime", error, size));
        return entry && config && bind;
    }
    bool load_kernel(int32_t func_id, const char *path, const char *name, sim::CoreKind core, char *error, size_t size) {
        if (func_id < 0 || func_id >= kMaxKernels) {
            std::snprintf(error, size, "kernel id %d of '%s' is outside 0..%d", func_id, name, kMaxKernels - 1);
            return false;
        }
        if (kernels_[func_id]) {
            std::snprintf(error, size, "kernel id %d is given twice ('%s' and '%s')", func_id, kernels_[func_id]->name, name);
            return false;
        }
        void *library = open(path, error, size);
        void *entry_point = library ? symbol(library, path, "kernel_entry", error, size) : nullptr;
        if (!entry_point) {
            const std::string reason = error;
            std::snprintf(error, size, "kernel '%s': %s", name, reason.c_str());
            return false;
        }
        Kernel *kernel = static_cast<Kernel *>(std::calloc(1, sizeof(Kernel)));
        kernel->entry = reinterpret_cast<KernelFunction>(entry_point);
        kernel->func_id = func_id;
        kernel->core = core;
        kernel->may_wait = mentions(path, "simpler_core_yield");
        std::snprintf(kernel->name, sizeof kernel->name, "%s", name);
        kernels_[func_id] = kernel;
        return true;
    }

private:
    static void *open(const char *path, char *error, size_t size) {
        // The loader maps what the headers promise and dies of the pages that a file cut short does not have.
        if (cut_short(path)) {
            std::snprintf(error, size, "cannot load %s: the file is cut short", path);
            return nullptr;
        }
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) std::snprintf(error, size, "cannot load %s: %s", path, dlerror());
        return library;
    }
    static bool mentions(const char *path, const char *name) {
        std::ifstream file(path, std::ios::binary);
        const std::string content{std::istreambuf_iterator<char>(file), {}};
        return content.find(name) != std::string::npos;
    }
    // Whether a 64-bit ELF file is shorter than its headers say; other files are the loader's to judge.
    static bool cut_short(const char *path) {
        std::ifstream file(path, std::ios::binary | std::ios::ate);
        const uint64_t bytes = file ? static_cast<uint64_t>(file.tellg()) : 0;
        Elf64_Ehdr header;
        if (!file.seekg(0) || !file.read(reinterpret_cast<char *>(&header), sizeof header)) return false;
        if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
        if (header.e_phentsize != sizeof(Elf64_Phdr)) return false;
        for (int i = 0; i < header.e_phnum; ++i) {
            Elf64_Phdr segment;
            if (!file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment)) ||
                !file.read(reinterpret_cast<char *>(&segment), sizeof segment)) {
                return true;
            }
            if (segment.p_filesz > bytes || segment.p_offset > bytes - segment.p_filesz) return true;
        }
        return false;
    }
    static void *symbol(void *library, const char *path, const char *name, char *error, size_t size) {
        void *address = dlsym(library, name);
        if (!address) std::snprintf(error, size, "%s does not export '%s'", path, name);
        return address;
    }

    Kernel *kernels_[kMaxKernels] = {};
};

}  // namespace simpler
