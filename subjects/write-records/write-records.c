/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Writes a new file in records of 4 KiB from one buffer, as the ninth pattern of the paper on cache pollution does: the
 * misses are the kernel's copy into pages that are not read soon. The records behind --ahead lie between marks 1 and
 * 2. */
#include "subject.h"

#include <fcntl.h>
#include <unistd.h>

#include "nearmiss.h"

enum { RECORD = 4096 };

static void write_records(const char *program, int file, const char *record, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        if (write(file, record, RECORD) != RECORD)
            subject_fail(program, "a record could not be written to ./write-records.data");
}

int main(int argc, char **argv) {
    uint64_t ahead = 4096, records = 2048;
    const struct subject_option options[] = {
        {"ahead", "records before the first mark", &ahead, 0},
        {"records", "records between the marks", &records, 0},
        {0},
    };
    subject_options(argc, argv, "Writes a new file, ./write-records.data, in records of 4 KiB.", options);
    char *record = subject_memory(argv[0], RECORD, RECORD);
    memset(record, 'n', RECORD);
    int file = open("write-records.data", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (file < 0)
        subject_fail(argv[0], "./write-records.data cannot be created");
    write_records(argv[0], file, record, ahead);
    double start = subject_now_ns();
    NEARMISS_MARK(1);
    write_records(argv[0], file, record, records);
    NEARMISS_MARK(2);
    double total = subject_now_ns() - start;
    printf("write-records: ahead=%llu records=%llu ns_per_record=%.1f\n", (unsigned long long)ahead,
           (unsigned long long)records, records ? total / records : 0);
    return 0;
}
