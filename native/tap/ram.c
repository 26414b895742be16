/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Guest RAM. Each memory node is a shared memory file that QEMU has mapped in this very process; the mapping is found
 * by the file's inode. An offset in guest RAM counts through the nodes in order.
 */
#include "tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static struct {
    int given;
    dev_t device;
    ino_t inode;
    unsigned char *host;
    uint64_t start, bytes;
} nodes[NM_MAX_NODES];

int ram_argument(unsigned node, int fd)
{
    struct stat st;
    if (node >= NM_MAX_NODES || fstat(fd, &st)) {
        tap_fail("argument ram%u: %d is not an open file", node, fd);
        return -1;
    }
    nodes[node].given = 1;
    nodes[node].device = st.st_dev;
    nodes[node].inode = st.st_ino;
    return 0;
}

static void note_mapping(const char *line)
{
    uint64_t from, to, offset, inode;
    unsigned major_number, minor_number;
    char access[8];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64, &from, &to, access, &offset,
               &major_number, &minor_number, &inode) != 7)
        return;
    if (access[3] != 's' || access[1] != 'w')
        return;
    for (unsigned n = 0; n < tap.control->nodes; n++)
        if (nodes[n].given && nodes[n].inode == inode && nodes[n].device == makedev(major_number, minor_number) &&
            offset == 0 && to - from >= tap.control->node_bytes[n])
            nodes[n].host = (unsigned char *)from;
}

int ram_init(void)
{
    if (nodes[tap.control->nodes - 1].bytes)
        return 0; /* all were found before */
    char line[4608];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) {
        tap_fail("/proc/self/maps: cannot be read, so guest memory is not found");
        return -1;
    }
    while (fgets(line, sizeof line, maps))
        note_mapping(line);
    fclose(maps);
    uint64_t start = 0;
    for (unsigned n = 0; n < tap.control->nodes; n++) {
        if (!nodes[n].host) {
            tap_fail("memory node %u: QEMU has no mapping of %" PRIu64 " bytes of the file given as ram%u", n,
                     tap.control->node_bytes[n], n);
            return -1;
        }
        nodes[n].start = start;
        nodes[n].bytes = tap.control->node_bytes[n];
        start += nodes[n].bytes;
    }
    return 0;
}

uint64_t ram_bytes(void)
{
    uint64_t sum = 0;
    for (unsigned n = 0; n < tap.control->nodes; n++)
        sum += nodes[n].bytes;
    return sum;
}

uint64_t ram_of_host(const void *host)
{
    const unsigned char *at = host;
    for (unsigned n = 0; n < tap.control->nodes; n++)
        if (at >= nodes[n].host && at < nodes[n].host + nodes[n].bytes)
            return nodes[n].start + (uint64_t)(at - nodes[n].host);
    return ~0ULL;
}

/* q35 keeps the first 2.75 GiB below the PCI hole if that is all there is, else the first 2 GiB; the rest lies at 4 GiB. */
uint64_t ram_of_physical(uint64_t physical)
{
    const uint64_t total = ram_bytes(), above = 1ULL << 32;
    const uint64_t low = total >= 0xb0000000ULL ? 0x80000000ULL : total;
    if (physical < low)
        return physical;
    if (physical >= above && physical - above < total - low)
        return physical - above + low;
    return ~0ULL;
}

void *ram_at(uint64_t offset, uint64_t bytes)
{
    for (unsigned n = 0; n < tap.control->nodes; n++)
        if (offset >= nodes[n].start && offset - nodes[n].start < nodes[n].bytes)
            return offset - nodes[n].start + bytes <= nodes[n].bytes ? nodes[n].host + (offset - nodes[n].start) : NULL;
    return NULL;
}
