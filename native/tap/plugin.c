/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The plugin's entry: arguments and the shared file.
 * Arguments: fd=N the shared memory file; ram0=N, ram1=N, ... the files that back the guest's memory nodes.
 */
#include "tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct tap tap;
struct vcpu tap_vcpus[NM_MAX_VCPUS];

void tap_fail(const char *why, ...)
{
    va_list list;
    va_start(list, why);
    char text[sizeof tap.control->error];
    vsnprintf(text, sizeof text, why, list);
    va_end(list);
    fprintf(stderr, "nearmiss tap: %s\n", text);
    if (!tap.control)
        return;
    if (tap.control->state != NM_STATE_FAILED)
        memcpy(tap.control->error, text, sizeof text);
    window_fail();
}

static int map_file(int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(struct nm_control)) {
        tap_fail("argument fd: %d is not an open shared memory file", fd);
        return -1;
    }
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        tap_fail("argument fd: cannot map %lld bytes of shared memory", (long long)st.st_size);
        return -1;
    }
    struct nm_control *c = at;
    if (c->magic != NM_ABI_MAGIC || c->version != NM_ABI_VERSION) {
        tap_fail("the shared memory file is not version %u of this interface", NM_ABI_VERSION);
        return -1;
    }
    uint64_t size = (uint64_t)st.st_size;
    if (c->chunks_offset + (uint64_t)c->chunk_count * c->chunk_bytes > size ||
        c->insns_offset + (uint64_t)c->insn_capacity * sizeof(struct nm_insn) > size ||
        c->ctxs_offset + (uint64_t)c->ctx_capacity * sizeof(struct nm_ctx) > size) {
        tap_fail("the shared memory file is shorter than its tables");
        return -1;
    }
    tap.file = at;
    tap.control = c;
    tap.insns = (void *)(tap.file + c->insns_offset);
    tap.ctxs = (void *)(tap.file + c->ctxs_offset);
    return 0;
}

static int configure(void)
{
    const struct nm_control *c = tap.control;
    if (c->vcpus == 0 || c->vcpus > NM_MAX_VCPUS || c->nodes == 0 || c->nodes > NM_MAX_NODES) {
        tap_fail("%u vCPUs on %u memory nodes: more than the tap knows", c->vcpus, c->nodes);
        return -1;
    }
    if (c->filter_line_log2 < 4 || c->filter_line_log2 > RAM_LINE_LOG2_MAX ||
        (1u << c->filter_index_bits) > FILTER_SETS_MAX || c->filter_index_low < c->filter_line_log2 ||
        (c->filter_index_bits && c->filter_index_low + c->filter_index_bits > 12)) {
        tap_fail("a filter of 2^%u-byte lines indexed by %u bits from bit %u cannot be built", c->filter_line_log2,
                 c->filter_index_bits, c->filter_index_low);
        return -1;
    }
    tap.line_log2 = c->filter_line_log2;
    tap.line_bytes = 1u << tap.line_log2;
    tap.index_low = c->filter_index_low;
    tap.index_mask = (1u << c->filter_index_bits) - 1;
    tap.vcpus = c->vcpus;
    tap.ordered = c->ordered_stores != 0;
    tap.by_task = c->by_task != 0;
    tap.every = c->every_access != 0;
    tap.sharing = c->vcpus > 1 || tap.by_task;
    tap.contexts = c->call_contexts != 0;
    tap.solo = c->vcpus == 1 && tap.line_log2 == SOLO_LINE_LOG2 && tap.index_low == SOLO_LINE_LOG2 &&
               !tap.ordered && !tap.by_task && !tap.every;
    if ((tap.ordered || tap.by_task || tap.every) && (c->first_level_data_ways || c->first_level_fetch_ways)) {
        tap_fail("the tap cannot run a first level if a replay may change stores, tasks or fields");
        return -1;
    }
    tap.solo_mask = (uint64_t)tap.index_mask * sizeof(struct filter_entry);
    tap.control->ctxs = 1;
    return first_level_init() || code_line_init() ? -1 : 0;
}

QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    int fd = -1;
    tap.id = id;
    for (int i = 0; i < argc; i++) {
        unsigned node;
        int value;
        if (sscanf(argv[i], "fd=%d", &value) == 1) {
            fd = value;
        } else if (sscanf(argv[i], "ram%u=%d", &node, &value) == 2) {
            if (ram_argument(node, value))
                return -1;
        } else {
            tap_fail("unknown argument %s", argv[i]);
            return -1;
        }
    }
    if (!info->system_emulation || strcmp(info->target_name, "x86_64")) {
        tap_fail("this QEMU runs %s, not a whole x86_64 machine", info->target_name);
        return -1;
    }
    return map_file(fd) || configure() || ring_init() || access_init() || branches_init() || translate_init() || window_init() ? -1 : 0;
}
