/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pages that a process was given, and what it had to do itself to find some (direct reclaim). Counted by process, on the
 * spot: a row an event would cost more than the allocation. */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32); /* tgid */
    __type(value, struct memory_stat);
} memory_stats SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct memory_stat);
} empty_memory SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32); /* tid */
    __type(value, __u64);
} reclaims SEC(".maps");

static __always_inline struct memory_stat *memory_of(__u32 tgid)
{
    if (!control.begin_ns || control.end_ns || !wanted(tgid))
        return 0;
    struct memory_stat *stat = bpf_map_lookup_elem(&memory_stats, &tgid);
    if (!stat) {
        __u32 zero = 0;
        struct memory_stat *empty = bpf_map_lookup_elem(&empty_memory, &zero);
        if (empty)
            bpf_map_update_elem(&memory_stats, &tgid, empty, BPF_NOEXIST);
        stat = bpf_map_lookup_elem(&memory_stats, &tgid);
    }
    if (!stat)
        add(COUNT_DROPPED_MEMORY, 1);
    else if (!stat->comm[0])
        bpf_get_current_comm(stat->comm, sizeof(stat->comm));
    return stat;
}

SEC("tp_btf/mm_page_alloc")
int page_alloc(__u64 *ctx)
{
    struct memory_stat *stat = ctx[0] ? memory_of(bpf_get_current_pid_tgid() >> 32) : 0;
    if (!stat)
        return 0;
    stat->allocations++;
    stat->pages += 1ULL << (ctx[1] & 31);
    return 0;
}

static __always_inline void reclaim_starts(void)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = id;
    __u64 now = bpf_ktime_get_ns();
    if (control.begin_ns && wanted(id >> 32))
        bpf_map_update_elem(&reclaims, &tid, &now, BPF_ANY);
}

static __always_inline void reclaim_ends(__u64 reclaimed)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tid = id;
    __u64 *begun = bpf_map_lookup_elem(&reclaims, &tid);
    if (!begun)
        return;
    __u64 took = bpf_ktime_get_ns() - *begun;
    bpf_map_delete_elem(&reclaims, &tid);
    struct memory_stat *stat = memory_of(id >> 32);
    if (!stat)
        return;
    stat->reclaims++;
    stat->reclaim_ns += took;
    stat->reclaimed += reclaimed;
    if (took > stat->max_ns)
        stat->max_ns = took;
}

/* The machine has too little memory, or the task's cgroup has. */
SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int reclaim_begin(__u64 *ctx)
{
    reclaim_starts();
    return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int reclaim_end(__u64 *ctx)
{
    reclaim_ends(ctx[0]);
    return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int cgroup_reclaim_begin(__u64 *ctx)
{
    reclaim_starts();
    return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int cgroup_reclaim_end(__u64 *ctx)
{
    reclaim_ends(ctx[0]);
    return 0;
}
