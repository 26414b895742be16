/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Block requests: start (queued by the submitter), issue (handed to the driver), completion. */

struct io_flight {
    __u64 start_ns, issue_ns;
    __u32 device, operation, bytes, tgid;
    char comm[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64); /* the request */
    __type(value, struct io_flight);
} io_flights SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 2048);
    __type(key, struct io_key);
    __type(value, struct io_stat);
} io_stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct io_stat);
} empty_io SEC(".maps");

struct queue_cell {
    struct bpf_spin_lock lock;
    __u32 padding;
    struct queue_stat stat;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, __u32); /* device */
    __type(value, struct queue_cell);
} queues SEC(".maps");

static __always_inline void queue_change(__u32 device, __u64 now, int by)
{
    struct queue_cell *cell = bpf_map_lookup_elem(&queues, &device);
    if (!cell) {
        struct queue_cell fresh = {};
        bpf_map_update_elem(&queues, &device, &fresh, BPF_NOEXIST);
        cell = bpf_map_lookup_elem(&queues, &device);
        if (!cell) {
            add(COUNT_DROPPED_IO, 1);
            return;
        }
    }
    bpf_spin_lock(&cell->lock);
    struct queue_stat *stat = &cell->stat;
    __u64 length = stat->in_flight;
    if (stat->changed_ns && now > stat->changed_ns) {
        stat->weighted_ns += length * (now - stat->changed_ns);
        if (length)
            stat->busy_ns += now - stat->changed_ns;
    }
    stat->changed_ns = now;
    if (by > 0) {
        stat->samples++;
        stat->sum += length;
        __u32 slot = 0;
        if (length >= 1)
            slot = length >= 128 ? 8 : length >= 64 ? 7 : length >= 32 ? 6 : length >= 16 ? 5 : length >= 8 ? 4 : length >= 4 ? 3 : length >= 2 ? 2 : 1;
        stat->log2_length[slot]++;
        stat->in_flight = length + 1;
        if (length + 1 > stat->max)
            stat->max = length + 1;
    } else if (length) {
        stat->in_flight = length - 1;
    }
    bpf_spin_unlock(&cell->lock);
}

static __always_inline bool describe(struct request *rq, struct io_flight *flight)
{
    struct gendisk *disk = rq->q->disk;
    if (!disk)
        return false;
    flight->device = (__u32)disk->major << 20 | (__u32)disk->first_minor;
    flight->operation = rq->cmd_flags & 0xff;
    flight->bytes = rq->__data_len;
    flight->tgid = bpf_get_current_pid_tgid() >> 32;
    bpf_get_current_comm(flight->comm, sizeof(flight->comm));
    return true;
}

/* Accounted in the context of the task that requests the data (6.5 on; before, the insertion into the queue). */
static __always_inline void io_begin(struct request *rq)
{
    __u64 key = (__u64)rq;
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    if (!wanted(tgid))
        return;
    struct io_flight flight = {.start_ns = bpf_ktime_get_ns()};
    if (!describe(rq, &flight))
        return;
    if (bpf_map_update_elem(&io_flights, &key, &flight, BPF_ANY)) {
        add(COUNT_DROPPED_IO, 1);
        return;
    }
    queue_change(flight.device, flight.start_ns, 1);
}

SEC("tp_btf/block_io_start")
int io_start(__u64 *ctx)
{
    io_begin((void *)ctx[0]);
    return 0;
}

SEC("tp_btf/block_rq_issue")
int io_issue(__u64 *ctx)
{
    struct request *rq = (void *)ctx[0];
    __u64 key = (__u64)rq;
    struct io_flight *flight = bpf_map_lookup_elem(&io_flights, &key);
    if (!flight)
        return 0;
    if (!flight->issue_ns) {
        flight->issue_ns = bpf_ktime_get_ns();
        flight->bytes = rq->__data_len; /* merged since it began */
    }
    return 0;
}

SEC("tp_btf/block_rq_complete")
int io_complete(__u64 *ctx)
{
    struct request *rq = (void *)ctx[0];
    __u64 key = (__u64)rq;
    struct io_flight *flight = bpf_map_lookup_elem(&io_flights, &key);
    if (!flight)
        return 0;
    if ((__u32)ctx[2] < rq->__data_len)
        return 0; /* a part only: the rest is still to come */
    __u64 now = bpf_ktime_get_ns();
    if (!flight->issue_ns)
        flight->issue_ns = flight->start_ns;
    struct io_key id = {.device = flight->device, .operation = flight->operation, .tgid = flight->tgid};
    __builtin_memcpy(id.comm, flight->comm, sizeof(id.comm));
    queue_change(flight->device, now, -1);
    struct io_stat *stat = bpf_map_lookup_elem(&io_stats, &id);
    if (!stat) {
        __u32 zero = 0;
        struct io_stat *empty = bpf_map_lookup_elem(&empty_io, &zero);
        if (empty)
            bpf_map_update_elem(&io_stats, &id, empty, BPF_NOEXIST);
        stat = bpf_map_lookup_elem(&io_stats, &id);
    }
    if (stat) {
        __u64 queued = flight->issue_ns - flight->start_ns;
        __u64 in_device = now - flight->issue_ns;
        __u64 total = now - flight->start_ns;
        stat->count++;
        stat->bytes += flight->bytes;
        stat->errors += (__u8)ctx[1] != 0;
        stat->queue_ns += queued;
        stat->device_ns += in_device;
        if (total > stat->max_ns)
            stat->max_ns = total;
        if (~total > stat->inverse_min_ns)
            stat->inverse_min_ns = ~total;
        stat->log2_queue_ns[log2_slot(queued, LOG2_SLOTS)]++;
        stat->log2_device_ns[log2_slot(in_device, LOG2_SLOTS)]++;
        add(COUNT_IO_DONE, 1);
        add(COUNT_IO_BYTES, flight->bytes);
    } else {
        add(COUNT_DROPPED_IO, 1);
    }
    bpf_map_delete_elem(&io_flights, &key);
    return 0;
}
