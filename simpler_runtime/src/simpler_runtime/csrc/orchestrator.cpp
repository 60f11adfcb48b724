// Submission of tasks: validation, storage, dependency discovery, publication.
#include "orchestrator.h"

#include <cstdio>
#include <cstring>

namespace simpler {

namespace {

constexpr uint64_t kOutputAlign = PTO2_PACKED_OUTPUT_ALIGN;

uint64_t aligned(uint64_t bytes) { return (bytes + kOutputAlign - 1) / kOutputAlign * kOutputAlign; }

TensorArgType tag_of(const TaskArgsView &args, int i) { return static_cast<TensorArgType>(args.tags[i]); }

}  // namespace

Orchestrator::Orchestrator(Engine &engine, Architecture arch, int clusters)
    : engine_(engine), arch_(arch), clusters_(clusters) {
    ops = &table();
    scopes_.reserve(PTO2_MAX_SCOPE_DEPTH + 1);
    scope_tasks_.reserve(4096);
    producers_.reserve(256);
}

void Orchestrator::submit(const MixedKernels &kernels, const TaskArgsView &args, bool dummy, SubmitResult &result) {
    empty_result(result);
    if (refused()) return;
    const uint64_t started = engine_.diagnostics ? timeline_clock() : 0;
    if (args.error) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: %s", args.error);
        return;
    }
    const Kernel *slots[3] = {};
    int active = 0;
    if (!dummy && (!resolve_kernels(kernels, args, slots, active) || !check_launch(args, slots, active))) return;

    uint64_t output_bytes = 0;
    uint32_t outputs = 0, writers = 0;
    for (int i = 0; i < args.tensor_count; ++i) {
        const TensorArgType tag = tag_of(args, i);
        if (tag == TensorArgType::OUTPUT) {
            output_bytes += aligned(static_cast<const TensorCreateInfo *>(args.objects[i])->buffer_size_bytes());
            ++outputs;
        } else {
            writers += tag == TensorArgType::INOUT || tag == TensorArgType::OUTPUT_EXISTING;
        }
    }

    const int ring_number = ring_index();
    Ring &ring = rings_[ring_number];
    unsigned char *heap = nullptr;
    if (!reserve_slot(ring, ring_number)) return;
    if (output_bytes && !reserve_heap(ring, ring_number, output_bytes, heap)) return;
    if (map_.used() + writers > TensorMap::kCapacity && !reserve_writers(writers)) return;

    const bool manual = scopes_.back().manual;
    ++submits_;
    if (!collect_producers(args, manual)) return;
    const uint32_t edges = static_cast<uint32_t>(producers_.size());
    if (edges && !reserve_dep_entries(ring, ring_number, edges)) {
        drop_producers();
        return;
    }

    Task *task = create_task(args.tensor_count, args.scalar_count, outputs, edges, ring_number);
    task->active_slots = static_cast<uint8_t>(active);
    task->block_num = dummy ? 1 : args.block_num;
    task->blocks_left.store(task->block_num, std::memory_order_relaxed);
    task->sync_start = !dummy && args.sync_start && args.block_num > 1;
    task->may_wait = false;
    for (const Kernel *kernel : slots) task->may_wait |= kernel && kernel->may_wait;
    task->timing_slot = static_cast<int8_t>(args.timing_slot);
    task->dump_tensors = args.dump_tensors;
    task->dump_scalars = args.dump_scalars;
    task->dump_ambiguous = args.dump_ambiguous;
    task->manual = manual;
    for (int s = 0; s < 3; ++s) task->kernels[s] = slots[s];
    std::memcpy(task->scalars, args.scalars, sizeof(uint64_t) * static_cast<size_t>(args.scalar_count));
    std::memcpy(task->scalar_types, args.scalar_types, static_cast<size_t>(args.scalar_count));
    std::memcpy(task->tags, args.tags, static_cast<size_t>(args.tensor_count));
    if (args.predicate && !dummy) {
        const CorePredicateOperand &operand = args.predicate->operand;
        const uint64_t size = get_element_size(operand.tensor->dtype);
        task->predicate_op = args.predicate->op;
        task->predicate_target = args.predicate->target;
        task->predicate_size = static_cast<uint8_t>(size);
        task->predicate_address = reinterpret_cast<const void *>(
            operand.tensor->buffer.addr + operand.tensor->compute_flat_offset(operand.indices, operand.ndims) * size);
    } else {
        task->predicate_op = PredicateOp::NONE;
    }

    uint32_t output = 0;
    for (int i = 0; i < args.tensor_count; ++i) {
        const TensorArgType tag = tag_of(args, i);
        ChipTensor &tensor = task->tensors[i];
        if (tag == TensorArgType::OUTPUT) {
            const TensorCreateInfo &info = *static_cast<const TensorCreateInfo *>(args.objects[i]);
            info.materialize(tensor, reinterpret_cast<uint64_t>(heap), task->id);
            fill(info, heap, tensor.buffer.size);
            heap += aligned(tensor.buffer.size);
            task->output_index[output++] = static_cast<uint8_t>(i);
        } else {
            tensor = *static_cast<const ChipTensor *>(args.objects[i]);
            if (!manual && !tensor.manual_dep && (tag == TensorArgType::INOUT || tag == TensorArgType::OUTPUT_EXISTING)) {
                map_.insert(tensor, *task);
            }
        }
    }
    task->heap_end = ring.heap.head();
    task->heap_allocated = ring.heap.allocated();
    if (engine_.diagnostics) engine_.diagnostics->submit(*task, args, manual, started);
    result = SubmitResult{task->id, task->tensors, task->output_index, outputs};
    publish(*task, ring);
    link(*task);
}

bool Orchestrator::resolve_kernels(const MixedKernels &kernels, const TaskArgsView &args, const Kernel *slots[3],
                                   int &active) {
    int32_t ids[3] = {kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id};
    // The vector lanes are equivalent: a lone second lane runs as the first.
    if (ids[0] < 0 && ids[1] < 0) std::swap(ids[1], ids[2]);
    for (int s = 0; s < 3; ++s) {
        if (ids[s] < 0) continue;
        const Kernel *kernel = callable_->find(ids[s]);
        if (!kernel) {
            engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: no kernel with id %d in this callable (slot %s)",
                                  ids[s], slot_name(s));
            return false;
        }
        const sim::CoreKind expected = s == 0 ? sim::CoreKind::kCube : sim::CoreKind::kVector;
        const bool known = static_cast<int32_t>(kernel->core) >= 0;  // public binaries do not say
        if (known && kernel->core != expected) {
            engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: kernel '%s' (id %d) is %s code but was submitted to slot %s",
                                  kernel->name, ids[s], kernel->core == sim::CoreKind::kCube ? "aic" : "aiv", slot_name(s));
            return false;
        }
        slots[s] = kernel;
        ++active;
    }
    if (active == 0) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: a task needs at least one kernel id (got %d, %d, %d)",
                              kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id);
        return false;
    }
    (void)args;
    return true;
}

bool Orchestrator::check_launch(const TaskArgsView &args, const Kernel *const slots[3], int active) {
    if (args.block_num < 1) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: block count must be at least 1, got %d", args.block_num);
        return false;
    }
    if (args.block_num * active > 32767) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: %d blocks x %d kernels exceed 32767 kernel calls per task",
                              args.block_num, active);
        return false;
    }
    if (args.predicate) {
        const CorePredicateOperand &operand = args.predicate->operand;
        if (!operand.tensor || operand.ndims > operand.tensor->ndims || !operand.tensor->buffer.addr) {
            engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: the predicate names no element of a tensor");
            return false;
        }
    }
    if (args.sync_start && args.block_num > 1) {
        const bool vector_only = !slots[0] && active == 1;
        const int limit = vector_only ? 2 * clusters_ : clusters_;
        if (args.block_num > limit) {
            engine_.errors.report(PTO2_ERROR_REQUIRE_SYNC_START_INVALID,
                                  "submit: %d blocks must start together but only %d %s are available", args.block_num,
                                  limit, vector_only ? "vector cores" : "clusters");
            return false;
        }
    }
    return true;
}

void Orchestrator::alloc(const TensorCreateInfo *const *infos, uint32_t count, const char *error, SubmitResult &result) {
    empty_result(result);
    if (refused()) return;
    if (!error && count == 0) error = "alloc_tensors needs at least one TensorCreateInfo";
    if (error) {
        engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "alloc_tensors: %s", error);
        return;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) bytes += aligned(infos[i]->buffer_size_bytes());
    const int ring_number = ring_index();
    Ring &ring = rings_[ring_number];
    unsigned char *heap = nullptr;
    if (!reserve_slot(ring, ring_number)) return;
    if (bytes && !reserve_heap(ring, ring_number, bytes, heap)) return;

    ++submits_;
    producers_.clear();
    Task *task = create_task(count, 0, count, 0, ring_number);
    task->active_slots = 0;
    task->block_num = 1;
    task->sync_start = false;
    task->may_wait = false;
    task->timing_slot = TASK_TIMING_SLOT_NONE;
    task->dump_tensors = task->dump_scalars = 0;
    task->manual = scopes_.back().manual;
    task->predicate_op = PredicateOp::NONE;
    for (int s = 0; s < 3; ++s) task->kernels[s] = nullptr;
    for (uint32_t i = 0; i < count; ++i) {
        ChipTensor &tensor = task->tensors[i];
        infos[i]->materialize(tensor, reinterpret_cast<uint64_t>(heap), task->id);
        fill(*infos[i], heap, tensor.buffer.size);
        heap += aligned(tensor.buffer.size);
        task->output_index[i] = static_cast<uint8_t>(i);
        task->tags[i] = static_cast<uint8_t>(TensorArgType::OUTPUT);
    }
    task->heap_end = ring.heap.head();
    task->heap_allocated = ring.heap.allocated();
    if (engine_.diagnostics) engine_.diagnostics->alloc(*task);
    result = SubmitResult{task->id, task->tensors, task->output_index, count};
    publish(*task, ring);
    link(*task);
}

Task *Orchestrator::create_task(uint32_t tensors, uint32_t scalars, uint32_t outputs, uint32_t edges, int ring_number) {
    // Task, tensors, scalars, edges, then the byte arrays: one block, in order of alignment.
    uint32_t bytes = static_cast<uint32_t>(sizeof(Task)) + tensors * static_cast<uint32_t>(sizeof(ChipTensor)) +
                     scalars * 8u + edges * static_cast<uint32_t>(sizeof(Edge)) + tensors + outputs + scalars;
    unsigned char *cursor = static_cast<unsigned char *>(storage_.allocate(bytes));
    Task *task = reinterpret_cast<Task *>(cursor);
    cursor += sizeof(Task);
    task->storage_bytes = bytes;
    task->tensors = reinterpret_cast<ChipTensor *>(cursor);
    cursor += tensors * sizeof(ChipTensor);
    task->scalars = reinterpret_cast<uint64_t *>(cursor);
    cursor += scalars * 8u;
    task->edges = reinterpret_cast<Edge *>(cursor);
    cursor += edges * sizeof(Edge);
    task->tags = cursor;
    task->output_index = cursor + tensors;
    task->scalar_types = cursor + tensors + outputs;

    task->pending.store(1, std::memory_order_relaxed);
    task->references.store(2, std::memory_order_relaxed);
    task->successors.store(nullptr, std::memory_order_relaxed);
    task->next_block = 0;
    task->id = PTO2TaskId::make(static_cast<uint8_t>(ring_number), rings_[ring_number].next_local());
    task->edge_count = edges;
    task->tensor_count = static_cast<uint16_t>(tensors);
    task->scalar_count = static_cast<uint16_t>(scalars);
    task->output_count = static_cast<uint8_t>(outputs);
    task->scope_closed = false;
    task->dep_entries = edges;
    task->link_stamp = 0;
    task->writer_entries = nullptr;
    return task;
}

void Orchestrator::publish(Task &task, Ring &ring) {
    ring.dep_used += task.dep_entries;
    ring.dep_head += task.dep_entries;
    if (ring.dep_used > ring.dep_high_water) ring.dep_high_water = ring.dep_used;
    if (ring.heap.used() > ring.heap_high_water) ring.heap_high_water = ring.heap.used();
    ring.push(&task);
    scope_tasks_.push_back(&task);
    ++submitted_tasks_;
}

// Turns the collected producers into edges and lets the task go.
void Orchestrator::link(Task &task) {
    for (uint32_t i = 0; i < task.edge_count; ++i) {
        const Producer &producer = producers_[i];
        Edge &edge = task.edges[i];
        edge.consumer = &task;
        edge.producer = producer.task;
        if (!dep_has_wait(static_cast<DepFlags>(producer.flags))) continue;
        Edge *head = producer.task->successors.load(std::memory_order_acquire);
        if (head == closed_list()) continue;
        task.pending.fetch_add(1, std::memory_order_relaxed);
        do {
            edge.next = head;
            if (producer.task->successors.compare_exchange_weak(head, &edge, std::memory_order_acq_rel,
                                                                std::memory_order_acquire)) {
                break;
            }
        } while (head != closed_list());
        if (head == closed_list()) task.pending.fetch_sub(1, std::memory_order_acq_rel);
    }
    producers_.clear();
    if (task.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) engine_.submit_ready(&task);
}

bool Orchestrator::collect_producers(const TaskArgsView &args, bool manual) {
    producers_.clear();
    for (uint32_t i = 0; i < args.dep_count; ++i) {
        bool issued = false;
        Task *producer = find_task(args.deps[i], issued);
        if (!issued) {
            engine_.errors.report(PTO2_ERROR_INVALID_ARGS, "submit: dependency %u (id 0x%llx) names no submitted task", i,
                                  static_cast<unsigned long long>(args.deps[i].raw));
            drop_producers();
            return false;
        }
        const uint8_t flags = uint8_t(args.dep_kinds ? args.dep_kinds[i] : DEP_WAIT | DEP_RETAIN);
        if (producer) add_producer(producer, flags);
    }
    if (manual) return true;
    for (int i = 0; i < args.tensor_count; ++i) {
        const TensorArgType tag = tag_of(args, i);
        if (tag == TensorArgType::OUTPUT) continue;
        const ChipTensor &tensor = *static_cast<const ChipTensor *>(args.objects[i]);
        if (tensor.owner_task_id.is_valid()) {
            bool issued = false;
            Task *creator = find_task(tensor.owner_task_id, issued);
            if (creator) add_producer(creator, DEP_WAIT | DEP_RETAIN);
        }
        if (tensor.manual_dep || (tag != TensorArgType::INPUT && tag != TensorArgType::INOUT)) continue;
        const bool supersedes = tag == TensorArgType::INOUT;
        map_.lookup(tensor, [&](WriterEntry &entry, Overlap kind) {
            if (entry.task->consumed()) return true;  // only waits to be recycled: it orders nothing any more
            add_producer(entry.task, DEP_WAIT);
            return supersedes && kind == Overlap::kCovered;
        });
    }
    return true;
}

void Orchestrator::add_producer(Task *producer, uint8_t flags) {
    if (producer->link_stamp == submits_) {
        producers_[producer->link_index].flags |= flags;
        return;
    }
    // A completed producer with an ended scope and no consumers is gone: its edge is satisfied.
    if (!producer->retain()) return;
    producer->link_stamp = submits_;
    producer->link_index = static_cast<uint32_t>(producers_.size());
    producers_.push_back(Producer{producer, flags});
}

void Orchestrator::drop_producers() {
    for (const Producer &producer : producers_) producer.task->release();
    producers_.clear();
}

Task *Orchestrator::find_task(PTO2TaskId id, bool &issued) {
    issued = false;
    if (id.is_invalid() || id.ring() >= PTO2_MAX_RING_DEPTH || (id.raw >> 40) != 0) return nullptr;
    return rings_[id.ring()].find(id.local(), issued);
}

void Orchestrator::fill(const TensorCreateInfo &info, unsigned char *memory, uint64_t bytes) {
    if (!info.has_initial_value || bytes == 0) return;
    const uint64_t size = get_element_size(info.dtype);
    std::memcpy(memory, &info.initial_value, size);
    // Doubling copies: each copy is as long as what is already there.
    for (uint64_t done = size; done < bytes;) {
        const uint64_t step = done < bytes - done ? done : bytes - done;
        std::memcpy(memory + done, memory, step);
        done += step;
    }
}

}  // namespace simpler
