// The collectors of one diagnostics run, and the writers of their files.
#include "diagnostics.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "args_dump.h"
#include "cluster.h"
#include "graph_recorder.h"
#include "scope_recorder.h"
#include "timeline.h"

namespace simpler {

namespace {

class File {
public:
    explicit File(const char *path) : file_(std::fopen(path, "w")) {}
    ~File() {
        if (file_) std::fclose(file_);
    }
    bool open() const { return file_ != nullptr; }
    void print(const char *format, ...) __attribute__((format(printf, 2, 3))) {
        va_list values;
        va_start(values, format);
        std::vfprintf(file_, format, values);
        va_end(values);
    }
    template <typename T>
    void numbers(const T *values, uint32_t count) {
        print("[");
        for (uint32_t i = 0; i < count; ++i) print("%s%lld", i ? ", " : "", static_cast<long long>(values[i]));
        print("]");
    }
    bool close() {
        const bool good = file_ && std::fclose(file_) == 0;
        file_ = nullptr;
        return good;
    }

private:
    std::FILE *file_;
};

using ull = unsigned long long;

// FNV-1a over the address and version that identify a tensor.
uint64_t tensor_identity(const ChipTensor &tensor) {
    uint64_t hash = 0xcbf29ce484222325ull;
    const auto mix = [&](uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3ull;
    };
    mix(tensor.buffer.addr, 8);
    mix(static_cast<uint32_t>(tensor.version), 4);
    return hash;
}

const char *tag_name(TensorArgType tag) {
    constexpr const char *kNames[] = {"INPUT", "OUTPUT", "INOUT", "OUTPUT_EXISTING", "NO_DEP"};
    return kNames[static_cast<int>(tag)];
}

void kernel_ids(const Task &task, int32_t ids[3]) {
    for (int s = 0; s < 3; ++s) ids[s] = task.kernels[s] ? task.kernels[s]->func_id : -1;
}

bool make_folder(const std::string &path) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        mkdir(path.substr(0, slash).c_str(), 0777);
    }
    return mkdir(path.c_str(), 0777) == 0 || errno == EEXIST;
}

void lower_case(const char *name, char *out, size_t size) {
    size_t i = 0;
    for (; name[i] && i + 1 < size; ++i) out[i] = name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i];
    out[i] = 0;
}

}  // namespace

// ---- deps.json -------------------------------------------------------------------------------------------------------

void GraphRecorder::task(const Task &task, const TaskArgsView &args, bool manual) {
    TaskRecord record = {task.id.raw, {}, task.block_num, manual, static_cast<uint32_t>(args_.size()), task.tensor_count};
    kernel_ids(task, record.kernels);
    tasks_.push_back(record);
    for (int i = 0; i < task.tensor_count; ++i) {
        args_.push_back(ArgRecord{static_cast<TensorArgType>(task.tags[i]), task.tensors[i]});
    }
    for (uint32_t i = 0; i < args.dep_count; ++i) {
        const uint8_t flags = uint8_t(args.dep_kinds ? args.dep_kinds[i] : DEP_WAIT | DEP_RETAIN);
        edges_.push_back(EdgeRecord{args.deps[i].raw, task.id.raw, -1, Source::kExplicit, flags, Overlap::kOther, 0, {}});
    }
    if (manual) return;
    for (int i = 0; i < task.tensor_count; ++i) {
        const ArgRecord &arg = args_[record.first_arg + i];
        if (arg.tag == TensorArgType::OUTPUT) continue;
        const ChipTensor &tensor = arg.tensor;
        const uint32_t position = record.first_arg + i;
        if (tensor.owner_task_id.is_valid()) {
            edges_.push_back(EdgeRecord{tensor.owner_task_id.raw, task.id.raw, i, Source::kCreator, DEP_WAIT | DEP_RETAIN,
                                        Overlap::kOther, position, {}});
        }
        if (tensor.manual_dep || (arg.tag != TensorArgType::INPUT && arg.tag != TensorArgType::INOUT)) continue;
        std::vector<Writer> &writers = writers_[tensor.buffer.addr];
        const Region probe = Region::of(tensor);
        size_t kept = 0;
        for (const Writer &writer : writers) {
            const Overlap kind = overlap(probe, writer.region);
            if (kind != Overlap::kNone) {
                edges_.push_back(EdgeRecord{writer.task, task.id.raw, i, Source::kTensorMap, DEP_WAIT, kind, position,
                                            writer.region});
            }
            if (!(kind == Overlap::kCovered && arg.tag == TensorArgType::INOUT)) writers[kept++] = writer;
        }
        writers.resize(kept);
    }
    for (int i = 0; i < task.tensor_count; ++i) {
        const ArgRecord &arg = args_[record.first_arg + i];
        if (arg.tensor.manual_dep) continue;
        if (arg.tag == TensorArgType::INOUT || arg.tag == TensorArgType::OUTPUT_EXISTING) {
            writers_[arg.tensor.buffer.addr].push_back(Writer{task.id.raw, Region::of(arg.tensor)});
        }
    }
}

void GraphRecorder::alloc(const Task &task) {
    tasks_.push_back(TaskRecord{task.id.raw, {-1, -1, -1}, 1, task.manual, static_cast<uint32_t>(args_.size()), 0});
}

bool GraphRecorder::write(const char *path) const {
    File file(path);
    if (!file.open()) return false;
    file.print("{\n\"tasks\": [");
    std::map<uint64_t, const ChipTensor *> tensors;
    const char *separator = "\n";
    for (const TaskRecord &task : tasks_) {
        file.print("%s{\"task_id\": \"%llu\", \"scope\": \"%s\", \"kernel_ids\": [%d, %d, %d], \"block_num\": %d, \"args\": [",
                   separator, static_cast<ull>(task.id), task.manual ? "manual" : "auto", task.kernels[0], task.kernels[1],
                   task.kernels[2], task.block_num);
        separator = ",\n";
        for (uint32_t i = 0; i < task.arg_count; ++i) {
            const ArgRecord &arg = args_[task.first_arg + i];
            const uint64_t identity = tensor_identity(arg.tensor);
            tensors.emplace(identity, &arg.tensor);
            file.print("%s{\"idx\": %u, \"type\": \"%s\", \"tensor_id\": \"%llu\", \"dtype\": \"%s\", \"shape\": ", i ? ", " : "",
                       i, tag_name(arg.tag), static_cast<ull>(identity), get_dtype_name(arg.tensor.dtype));
            file.numbers(arg.tensor.shapes, arg.tensor.ndims);
            file.print(", \"start_offset\": \"%llu\", \"strides\": ", static_cast<ull>(arg.tensor.start_offset));
            file.numbers(arg.tensor.strides, arg.tensor.ndims);
            file.print("}");
        }
        file.print("]}");
    }
    file.print("\n],\n\"tensors\": [");
    separator = "\n";
    for (const auto &[identity, tensor] : tensors) {
        const uint64_t element = get_element_size(tensor->dtype);
        file.print("%s{\"tensor_id\": \"%llu\", \"buffer_addr\": \"%llu\", \"version\": %d, \"dtype\": \"%s\", \"buffer_numel\": \"%llu\"}",
                   separator, static_cast<ull>(identity), static_cast<ull>(tensor->buffer.addr), tensor->version,
                   get_dtype_name(tensor->dtype), static_cast<ull>(element ? tensor->buffer.size / element : 0));
        separator = ",\n";
    }
    file.print("\n],\n\"edges\": [");
    separator = "\n";
    constexpr const char *kSources[] = {"explicit", "creator", "tensormap"};
    for (const EdgeRecord &edge : edges_) {
        const DepFlags flags = static_cast<DepFlags>(edge.flags);
        file.print("%s{\"pred\": \"%llu\", \"succ\": \"%llu\", \"arg\": %d, \"source\": \"%s\", \"flags\": [%s%s%s]", separator,
                   static_cast<ull>(edge.producer), static_cast<ull>(edge.consumer), edge.arg,
                   kSources[static_cast<int>(edge.source)], dep_has_wait(flags) ? "\"wait\"" : "",
                   dep_has_wait(flags) && dep_has_retain(flags) ? ", " : "", dep_has_retain(flags) ? "\"retain\"" : "");
        separator = ",\n";
        if (edge.source != Source::kExplicit) {
            const ChipTensor &tensor = args_[edge.consumer_arg].tensor;
            if (edge.source == Source::kTensorMap) {
                file.print(", \"overlap\": \"%s\"", edge.overlap == Overlap::kCovered ? "covered" : "other");
            }
            file.print(", \"tensor_id\": \"%llu\", \"consumer_dtype\": \"%s\", \"consumer_shape\": ",
                       static_cast<ull>(tensor_identity(tensor)), get_dtype_name(tensor.dtype));
            file.numbers(tensor.shapes, tensor.ndims);
            file.print(", \"consumer_start_offset\": \"%llu\", \"consumer_strides\": ", static_cast<ull>(tensor.start_offset));
            file.numbers(tensor.strides, tensor.ndims);
        }
        if (edge.source == Source::kTensorMap) {
            file.print(", \"producer_shape\": ");
            file.numbers(edge.region.shapes, edge.region.ndims);
            file.print(", \"producer_start_offset\": \"%llu\", \"producer_strides\": ", static_cast<ull>(edge.region.begin));
            file.numbers(edge.region.strides, edge.region.ndims);
        }
        file.print("}");
    }
    file.print("\n]\n}\n");
    return file.close();
}

// ---- scope_stats.jsonl -------------------------------------------------------------------------------------------------

bool ScopeRecorder::write(const char *path, bool fatal, const Ring *rings, int ring_count, uint32_t map_capacity) const {
    File file(path);
    if (!file.open()) return false;
    file.print("{\"version\": 6, \"fatal\": %s, \"dropped\": 0, \"total\": %zu, \"task_window_max\": [", fatal ? "true" : "false",
               records_.size());
    for (int r = 0; r < ring_count; ++r) file.print("%s%u", r ? ", " : "", rings[r].window());
    file.print("], \"heap_max\": [");
    for (int r = 0; r < ring_count; ++r) file.print("%s%llu", r ? ", " : "", static_cast<ull>(rings[r].heap.capacity()));
    file.print("], \"dep_pool_max\": [");
    for (int r = 0; r < ring_count; ++r) file.print("%s%u", r ? ", " : "", rings[r].dep_capacity);
    file.print("], \"tensormap_max\": %u}\n", map_capacity);
    for (const Record &record : records_) {
        const char *name = record.file ? record.file : "runtime";
        if (const char *slash = std::strrchr(name, '/')) name = slash + 1;
        file.print("{\"site\": \"%s:%d\", \"phase\": \"%s\", \"depth\": %d, \"ring\": %d, \"task_window_start\": %u, "
                   "\"task_window_end\": %u, \"heap_start\": %llu, \"heap_end\": %llu, \"dep_pool_start\": %llu, "
                   "\"dep_pool_end\": %llu, \"tensormap\": %u}\n",
                   name, record.line, record.begin ? "begin" : "end", record.depth, record.ring, record.window_start,
                   record.window_end, static_cast<ull>(record.heap_start), static_cast<ull>(record.heap_end),
                   static_cast<ull>(record.dep_start), static_cast<ull>(record.dep_end), record.map_entries);
    }
    return file.close();
}

// ---- swimlane and PMU ----------------------------------------------------------------------------------------------------

void Timeline::block(const Task &task, int32_t index, int lane, uint64_t start, uint64_t end) {
    Block record = {task.id.raw, index, lane, {}, start, end};
    kernel_ids(task, record.kernels);
    SpinGuard guard(lock_);
    blocks_.push_back(record);
}

void Timeline::phase(int lane, bool completes, uint64_t start, uint64_t end) {
    SpinGuard guard(lock_);
    phases_.push_back(Phase{lane, completes, start, end});
}

namespace {

// Core number of a slot: cubes first, then the first and the second vector lanes.
int core_number(int lane, int slot, int clusters) { return lane + slot * clusters; }

int used_clusters(const std::vector<Timeline::Block> &blocks, int clusters) {
    for (const Timeline::Block &block : blocks) clusters = block.lane >= clusters ? block.lane + 1 : clusters;
    return clusters;
}

uint64_t cycles(uint64_t ns, uint64_t clock_hz) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(ns) * clock_hz / 1000000000u);
}

}  // namespace

bool Timeline::write_swimlane(const char *path, int level, uint64_t clock_hz, int clusters) const {
    File file(path);
    if (!file.open()) return false;
    clusters = used_clusters(blocks_, clusters);
    file.print("{\"chip_swimlane_level\": %d,\n\"metadata\": {\"clock_freq_hz\": %llu, \"num_cores\": %d, \"core_types\": [", level,
               static_cast<ull>(clock_hz), 3 * clusters);
    for (int core = 0; core < 3 * clusters; ++core) file.print("%s\"%s\"", core ? ", " : "", core < clusters ? "aic" : "aiv");
    file.print("]");
    if (level >= 3) {
        file.print(", \"core_to_thread\": [");
        for (int core = 0; core < 3 * clusters; ++core) file.print("%s%d", core ? ", " : "", core % clusters);
        file.print("]");
    }
    file.print("},\n");
    for (int stream = 0; stream < (level >= 2 ? 2 : 1); ++stream) {
        file.print("\"%s\": [", stream == 0 ? "aicore_tasks" : "aicpu_tasks");
        std::vector<uint64_t> sequence(3 * clusters, 0);
        const char *separator = "\n";
        for (const Block &block : blocks_) {
            for (int slot = 0; slot < 3; ++slot) {
                if (block.kernels[slot] < 0) continue;
                const int core = core_number(block.lane, slot, clusters);
                const ull start = cycles(block.start_ns, clock_hz), end = cycles(block.end_ns, clock_hz);
                if (stream == 0) {
                    file.print("%s[%d, %llu, %llu, %llu, %llu]", separator, core, static_cast<ull>(block.task),
                               static_cast<ull>(sequence[core]++), start, end);
                } else {
                    file.print("%s[%d, %llu, %llu, %llu]", separator, core, static_cast<ull>(sequence[core]++), start, end);
                }
                separator = ",\n";
            }
        }
        file.print("\n],\n");
    }
    if (level >= 3) {
        int lanes = 0;
        for (const Phase &phase : phases_) lanes = phase.lane >= lanes ? phase.lane + 1 : lanes;
        file.print("\"aicpu_scheduler_phases\": [");
        for (int lane = 0; lane < lanes; ++lane) {
            file.print("%s[", lane ? ",\n" : "\n");
            ull iteration = 0;
            for (const Phase &phase : phases_) {
                if (phase.lane != lane) continue;
                file.print("%s{\"kind\": \"%s\", \"start_cycles\": %llu, \"end_cycles\": %llu, \"loop_iter\": %llu, "
                           "\"tasks_processed\": 1}",
                           iteration ? ",\n" : "", phase.completes ? "complete" : "dispatch",
                           static_cast<ull>(cycles(phase.start_ns, clock_hz)), static_cast<ull>(cycles(phase.end_ns, clock_hz)),
                           iteration);
                ++iteration;
            }
            file.print("]");
        }
        file.print("\n],\n");
    }
    if (level >= 4) {
        file.print("\"aicpu_orchestrator_phases\": [[");
        for (size_t i = 0; i < submits_.size(); ++i) {
            file.print("%s{\"submit_idx\": %zu, \"task_id\": %llu, \"start_cycles\": %llu, \"end_cycles\": %llu}", i ? ",\n" : "\n", i,
                       static_cast<ull>(submits_[i].task), static_cast<ull>(cycles(submits_[i].start_ns, clock_hz)),
                       static_cast<ull>(cycles(submits_[i].end_ns, clock_hz)));
        }
        file.print("\n]],\n");
    }
    file.print("\"platform\": \"sim\"}\n");
    return file.close();
}

// A CPU has no counters per pipe: the total is measured, the pipe columns are zero.
bool Timeline::write_pmu(const char *path, int event_type, uint64_t clock_hz, int clusters, bool a5) const {
    File file(path);
    if (!file.open()) return false;
    const int kinds[] = {1, 2, 4, 5, 6, 7, 8};
    bool known = false;
    for (int kind : kinds) known |= kind == event_type;
    if (!known) event_type = 2;
    clusters = used_clusters(blocks_, clusters);
    (void)a5;
    file.print("thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,vec_busy_cycles,cube_busy_cycles,"
               "scalar_busy_cycles,mte1_busy_cycles,mte2_busy_cycles,mte3_busy_cycles,icache_miss,icache_req,event_type\n");
    for (const Block &block : blocks_) {
        for (int slot = 0; slot < 3; ++slot) {
            if (block.kernels[slot] < 0) continue;
            file.print("%d,%d,0x%016llx,%d,%d,%llu,0,0,0,0,0,0,0,0,%d\n", block.lane, core_number(block.lane, slot, clusters),
                       static_cast<ull>(block.task), block.kernels[slot], slot == 0 ? 0 : 1,
                       static_cast<ull>(cycles(block.end_ns - block.start_ns, clock_hz)), event_type);
        }
    }
    return file.close();
}

// ---- args dump -------------------------------------------------------------------------------------------------------------

bool ArgsDump::store(const ChipTensor &tensor, Record &record) {
    if (!payload_) {
        if (!make_folder(folder_)) return false;
        payload_ = std::fopen((folder_ + "/args.bin").c_str(), "wb");
        if (!payload_) return false;
    }
    const uint64_t element = get_element_size(tensor.dtype);
    const unsigned char *base = reinterpret_cast<const unsigned char *>(tensor.buffer.addr) + tensor.start_offset * element;
    record.offset = written_;
    record.size = tensor.nbytes();
    if (record.size == 0) return true;
    if (tensor.is_contiguous) {
        written_ += std::fwrite(base, 1, record.size, payload_);
        return true;
    }
    // Logical order: the last dimension runs fastest.
    uint32_t index[MAX_TENSOR_DIMS] = {};
    for (uint64_t n = tensor.numel(); n > 0; --n) {
        uint64_t offset = 0;
        for (uint32_t d = 0; d < tensor.ndims; ++d) offset += static_cast<uint64_t>(index[d]) * tensor.strides[d];
        written_ += std::fwrite(base + offset * element, 1, element, payload_);
        for (uint32_t d = tensor.ndims; d-- > 0 && ++index[d] == tensor.shapes[d];) index[d] = 0;
    }
    return true;
}

void ArgsDump::capture(const Task &task, bool before) {
    if (task.active_slots == 0) return;
    SpinGuard guard(lock_);
    for (int i = 0; i < task.tensor_count; ++i) {
        const bool marked = i < 64 && (task.dump_tensors >> i & 1);
        if (level_ == 1 && !marked) continue;
        const TensorArgType tag = static_cast<TensorArgType>(task.tags[i]);
        const bool output = tag == TensorArgType::OUTPUT || tag == TensorArgType::OUTPUT_EXISTING;
        if (before ? output : !(output || tag == TensorArgType::INOUT)) continue;
        Record record = {};
        record.task = task.id.raw;
        kernel_ids(task, record.kernels);
        record.role = output ? "output" : tag == TensorArgType::INOUT ? "inout" : "input";
        record.before = before;
        record.index = i;
        record.tensor = task.tensors[i];
        record.dtype = task.tensors[i].dtype;
        record.offset = written_;
        if (level_ != 3 || marked) store(task.tensors[i], record);
        records_.push_back(record);
    }
    for (int i = 0; before && i < task.scalar_count; ++i) {
        if (level_ == 1 && !(task.dump_scalars >> i & 1)) continue;
        Record record = {};
        record.task = task.id.raw;
        kernel_ids(task, record.kernels);
        record.role = "input";
        record.before = true;
        record.index = task.tensor_count + i;
        record.scalar = true;
        record.dtype = static_cast<DataType>(task.scalar_types[i]);
        record.ambiguous = task.dump_ambiguous >> i & 1;
        record.value = task.scalars[i];
        record.offset = written_;
        records_.push_back(record);
    }
}

bool ArgsDump::write(const char *run_dir) {
    if (payload_) {
        std::fclose(payload_);
        payload_ = nullptr;
    }
    if (records_.empty()) return true;
    if (!make_folder(folder_)) return false;
    File file((folder_ + "/args_dump.json").c_str());
    if (!file.open()) return false;
    int before = 0, roles[3] = {};
    for (const Record &record : records_) {
        before += record.before;
        roles[record.role[0] == 'o' ? 1 : record.role[2] == 'o' ? 2 : 0]++;
    }
    file.print("{\n\"run_dir\": \"%s\",\n\"bin_format\": {\"type\": \"logical_contiguous\", \"byte_order\": \"little_endian\"},\n", run_dir);
    file.print("\"dump_args_level\": %d,\n\"total_args\": %zu,\n\"before_dispatch\": %d,\n\"after_completion\": %d,\n", level_,
               records_.size(), before, static_cast<int>(records_.size()) - before);
    file.print("\"input_args\": %d,\n\"output_args\": %d,\n\"inout_args\": %d,\n", roles[0], roles[1], roles[2]);
    file.print("\"truncated_args\": 0,\n\"dropped_records\": 0,\n\"dropped_overwrite\": 0,\n\"bin_file\": %s,\n\"args\": [",
               written_ || level_ != 3 ? "\"args.bin\"" : "null");
    const char *separator = "\n";
    for (const Record &record : records_) {
        char dtype[24];
        lower_case(get_dtype_name(record.dtype), dtype, sizeof dtype);
        file.print("%s{\"task_id\": \"0x%016llx\", \"func_id\": [", separator, static_cast<ull>(record.task));
        separator = ",\n";
        const char *comma = "";
        for (int32_t id : record.kernels) {
            if (id < 0) continue;
            file.print("%s%d", comma, id);
            comma = ", ";
        }
        file.print("], \"role\": \"%s\", \"stage\": \"%s\", \"arg_index\": %d, \"kind\": \"%s\", \"dtype\": \"%s\", \"shape\": ", record.role,
                   record.before ? "before_dispatch" : "after_completion", record.index, record.scalar ? "scalar" : "tensor", dtype);
        const uint32_t rank = record.scalar ? 0 : record.tensor.ndims;
        file.numbers(record.tensor.shapes, rank);
        file.print(", \"strides\": ");
        file.numbers(record.tensor.strides, rank);
        file.print(", \"start_offset\": %llu, \"is_contiguous\": %s, \"truncated\": false, \"overwritten\": false, ",
                   static_cast<ull>(record.tensor.start_offset), record.scalar || record.tensor.is_contiguous ? "true" : "false");
        if (record.scalar) file.print("\"value\": \"0x%016llx\", ", static_cast<ull>(record.value));
        if (record.ambiguous) file.print("\"arg_index_ambiguous\": true, ");
        file.print("\"bin_offset\": %llu, \"bin_size\": %llu}", static_cast<ull>(record.offset), static_cast<ull>(record.size));
    }
    file.print("\n]\n}\n");
    if (level_ != 3 && written_ == 0) File((folder_ + "/args.bin").c_str());
    return file.close();
}

// ---- all ---------------------------------------------------------------------------------------------------------------------

namespace {

// Null pointers are collectors that are off.
class Collectors final : public Diagnostics {
public:
    Collectors(const DiagnosticsOptions &options, bool a5)
        : options_(options), folder_(options.output_prefix), a5_(a5) {
        if (options.swimlane_level || options.pmu_event) timeline_ = std::make_unique<Timeline>();
        if (options.dep_gen) graph_ = std::make_unique<GraphRecorder>();
        if (options.scope_stats) scopes_ = std::make_unique<ScopeRecorder>();
        if (options.dump_level) args_ = std::make_unique<ArgsDump>(options.dump_level, folder_ + "/args_dump");
        timed = timeline_ != nullptr;
    }

    void block(const Task &task, int32_t index, int lane, uint64_t start, uint64_t end) override {
        timeline_->block(task, index, lane, start, end);
    }
    void phase(int lane, bool completes, uint64_t start, uint64_t end) override {
        timeline_->phase(lane, completes, start, end);
    }
    void submit(const Task &task, const TaskArgsView &args, bool manual, uint64_t start) override {
        if (graph_) graph_->task(task, args, manual);
        if (timeline_) timeline_->submit(task.id, start, timeline_clock());
    }
    void alloc(const Task &task) override {
        if (graph_) graph_->alloc(task);
    }
    void scope(const ScopeBoundary &boundary) override {
        if (scopes_) scopes_->boundary(boundary);
    }
    void before_dispatch(const Task &task) override {
        if (args_) args_->before_dispatch(task);
    }
    void after_completion(const Task &task) override {
        if (args_) args_->after_completion(task);
    }

    bool write(bool fatal, const Ring *rings, int ring_count, uint32_t map_capacity, int clusters) override {
        if (!make_folder(folder_)) return false;
        const uint64_t clock_hz = a5_ ? 1000000000u : 50000000u;
        bool good = true;
        if (options_.swimlane_level) {
            good &= timeline_->write_swimlane((folder_ + "/chip_swimlane_records.json").c_str(), options_.swimlane_level,
                                              clock_hz, clusters);
        }
        if (options_.pmu_event) {
            good &= timeline_->write_pmu((folder_ + "/pmu.csv").c_str(), options_.pmu_event, clock_hz, clusters, a5_);
        }
        if (graph_) good &= graph_->write((folder_ + "/deps.json").c_str());
        if (scopes_) {
            good &= make_folder(folder_ + "/scope_stats");
            good &= scopes_->write((folder_ + "/scope_stats/scope_stats.jsonl").c_str(), fatal, rings, ring_count,
                                   map_capacity);
        }
        if (args_) good &= args_->write(folder_.c_str());
        return good;
    }

private:
    std::unique_ptr<Timeline> timeline_;
    std::unique_ptr<GraphRecorder> graph_;
    std::unique_ptr<ScopeRecorder> scopes_;
    std::unique_ptr<ArgsDump> args_;
    DiagnosticsOptions options_;
    std::string folder_;
    bool a5_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Diagnostics *simpler_diagnostics_create(
    const DiagnosticsOptions &options, bool a5) {
    return new Collectors(options, a5);
}

}  // namespace simpler
