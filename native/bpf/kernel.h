/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The few kernel types these programs read. Offsets are relocated at load time (CO-RE), so only the
 * names and the types of the fields matter here. */
#ifndef NEARMISS_BPF_KERNEL_H
#define NEARMISS_BPF_KERNEL_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define RELOCATED __attribute__((preserve_access_index))

struct pt_regs {
    unsigned long di, si, dx, r10, r8, orig_ax, ip, sp, bp;
} RELOCATED;

struct rq {
    int cpu;
} RELOCATED;

struct cfs_rq {
    struct rq *rq;
} RELOCATED;

struct sched_entity {
    __u64 exec_start, sum_exec_runtime, nr_migrations;
    struct cfs_rq *cfs_rq;
} RELOCATED;

struct sched_info {
    unsigned long pcount;
    unsigned long long run_delay;
} RELOCATED;

struct mm_struct {
    unsigned long flags;
} RELOCATED;

struct sighand_struct {
    int count;
} RELOCATED;

struct signal_struct {
    int nr_threads;
} RELOCATED;

struct files_struct {
    int count;
} RELOCATED;

struct kernfs_node {
    __u64 id;
} RELOCATED;

struct cgroup {
    struct kernfs_node *kn;
    int level;
    struct cgroup *ancestors[1];
} RELOCATED;

struct css_set {
    struct cgroup *dfl_cgrp;
} RELOCATED;

struct task_struct {
    int pid, tgid;
    int on_cpu, exit_state;
    unsigned int __state, flags;
    char comm[16];
    struct sched_entity se;
    struct sched_info sched_info;
    unsigned long nvcsw, nivcsw;
    __u64 start_time;
    __u64 utime, stime;
    unsigned in_iowait : 1;
    struct mm_struct *mm;
    struct sighand_struct *sighand;
    struct signal_struct *signal;
    struct files_struct *files;
    struct css_set *cgroups;
} RELOCATED;

struct gendisk {
    int major, first_minor;
} RELOCATED;

struct request_queue {
    struct gendisk *disk;
} RELOCATED;

struct request {
    struct request_queue *q;
    unsigned int cmd_flags, __data_len;
} RELOCATED;

struct bpf_iter_meta {
    __u64 seq_num;
} RELOCATED;

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
} RELOCATED;

#define PF_KTHREAD 0x00200000

#endif
