/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The events that a poll returned, kept until the thread's next call of the kind: how many of its events are of
 * descriptors that the call before returned too? Only with a log, since it costs each call. */

#define MOST_EVENTS 64   /* of a call that is compared */
#define MOST_POLLED 8192 /* descriptors of a poll that is searched for its events */
#define BLOCK 256        /* of them are read at once */
#define SELECT_WORDS 4   /* of each set of a select: 256 descriptors */
#define RETURN_ROWS 1024 /* the first threads and calls; of more nothing is known */
#define KEYS_LOG2 9      /* places for the keys of two calls */
#define KEYS (1 << KEYS_LOG2)
#define KEY_TRIES 8
#define NO_PLACE KEYS
#define NOT_COMPARED (-1)

/* A descriptor, or what an epoll set was given for one. */
struct returned_key {
    __u64 key;
    __u32 last, before; /* the last two calls that returned it */
};

struct poll_return {
    __u64 switches;      /* of the thread when it entered the call under way: it blocks where they change */
    unsigned long at[3]; /* where the call under way will write what it found */
    __u32 wide;          /* select: the descriptors of its sets */
    __u32 set;           /* epoll: the set of the last call */
    __u32 calls;         /* the last call's number */
    __u32 known;         /* what the last call returned is known */
    /* Intermediate values, here and not in registers: the verifier would follow their every value. */
    volatile __u32 events, seen, place;
    volatile __s32 again;
    __u64 selected[SELECT_WORDS];
    __u64 found[MOST_EVENTS];
    struct returned_key keys[KEYS];
    __u32 words[2 * BLOCK]; /* a block of a poll, or the events of an epoll */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, RETURN_ROWS);
    __type(key, __u32);
    __type(value, struct poll_return);
} poll_returns SEC(".maps");

static __always_inline struct poll_return *return_of(struct poll_stat *stat)
{
    __u32 row = stat->row;
    return bpf_map_lookup_elem(&poll_returns, &row);
}

/* The row is a new thread's: what it did before is not known. */
static __always_inline void return_unknown(struct poll_stat *stat)
{
    struct poll_return *kept = return_of(stat);
    if (kept)
        kept->known = 0;
}

/* A call begins that will write its results where its arguments point. */
static __always_inline void return_expected(__u32 kind, struct poll_stat *stat, __u64 switches, __u64 a0, __u64 a1,
                                            __u64 a2, __u64 a3)
{
    struct poll_return *kept = return_of(stat);
    if (!kept)
        return;
    kept->switches = switches;
    switch (kind) {
    case POLL_POLL:
    case POLL_PPOLL:
        kept->at[0] = a0;
        break;
    case POLL_SELECT:
    case POLL_PSELECT6:
        kept->wide = a0;
        kept->at[0] = a1;
        kept->at[1] = a2;
        kept->at[2] = a3;
        break;
    default:
        kept->at[0] = a1;
    }
}

/* Puts those of a block of a poll's descriptors that have events into `found`; 0 where the block cannot be read. Global,
 * so that the verifier follows it once and not at each call. */
__noinline int find_block(__u32 row, __u64 at, __u32 rest)
{
    struct poll_return *kept = bpf_map_lookup_elem(&poll_returns, &row);
    if (!kept || !rest || rest > BLOCK || bpf_probe_read_user(kept->words, rest * 8, (void *)at))
        return 0;
    for (__u32 i = 0; i < BLOCK && i < rest; i++) {
        if (!(kept->words[2 * i + 1] >> 16)) /* the upper half: `revents` */
            continue;
        kept->found[kept->seen & (MOST_EVENTS - 1)] = kept->words[2 * i];
        kept->seen++;
    }
    return 1;
}

/* Puts the descriptors with events among those of a poll into `found`. */
static __always_inline bool find_polled(struct poll_return *kept, __u32 row, __u64 requested)
{
    kept->seen = 0;
    for (__u32 block = 0; block < MOST_POLLED / BLOCK; block++) {
        __u64 first = block * BLOCK;
        if (first >= requested || kept->seen >= kept->events)
            break;
        __u64 rest = requested - first;
        if (!find_block(row, kept->at[0] + first * 8, rest > BLOCK ? BLOCK : rest))
            return false;
    }
    return kept->seen == kept->events;
}

/* Puts what an epoll set was given for the descriptors with events into `found`: the words 1 and 2 of each event. */
static __always_inline bool find_epolled(struct poll_return *kept)
{
    __u32 events = kept->events;
    if (events > MOST_EVENTS || bpf_probe_read_user(kept->words, events * 12, (void *)kept->at[0]))
        return false;
    for (__u32 i = 0; i < MOST_EVENTS && i < kept->events; i++)
        kept->found[i] = kept->words[3 * i + 1] | (__u64)kept->words[3 * i + 2] << 32;
    return true;
}

/* Returns the place of a key, else a place with room for it: that of a key that neither this call nor the one before
 * returned. */
static __always_inline __u32 place_of(struct poll_return *kept, __u64 key, __u32 call)
{
    __u32 first = key * 0x9e3779b97f4a7c15ULL >> (64 - KEYS_LOG2);
    kept->place = NO_PLACE;
#pragma unroll
    for (__u32 i = 0; i < KEY_TRIES; i++) {
        __u32 index = (first + i) & (KEYS - 1);
        struct returned_key *key_here = &kept->keys[index];
        if (key_here->key == key) {
            kept->place = index;
            break;
        }
        if (kept->place == NO_PLACE && call - key_here->last > 1)
            kept->place = index;
    }
    return kept->place;
}

/* Notes that this call returned a key, and counts the key if the call before did. False where there is no room. */
static __always_inline bool count_key(struct poll_return *kept, __u64 key, __u32 call)
{
    __u32 index = place_of(kept, key, call);
    if (index >= KEYS)
        return false;
    struct returned_key *place = &kept->keys[index];
    if (place->last != call) {
        place->before = place->key == key ? place->last : call - 2;
        place->last = call;
        place->key = key;
    }
    kept->again += place->before == call - 1;
    return true;
}

/* How many of the keys in `found` the call before returned; notes that this one did. Global as `find_block` is. */
__noinline int count_again(__u32 row)
{
    struct poll_return *kept = bpf_map_lookup_elem(&poll_returns, &row);
    if (!kept)
        return NOT_COMPARED;
    kept->again = 0;
    for (__u32 i = 0; i < MOST_EVENTS && i < kept->events; i++)
        if (!count_key(kept, kept->found[i], kept->calls))
            return NOT_COMPARED;
    return kept->again;
}

static __always_inline __u64 ones(__u64 word)
{
    word = word - ((word >> 1) & 0x5555555555555555ULL);
    word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
    return ((word + (word >> 4) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL) >> 56;
}

/* The three sets of select are kept themselves, as one: a descriptor may be in several. */
static __always_inline int select_again(struct poll_return *kept, __u32 returned)
{
    __u32 found = 0;
    int again = 0;
#pragma unroll
    for (int w = 0; w < SELECT_WORDS; w++) {
        __u64 all = 0;
#pragma unroll
        for (int s = 0; s < 3; s++) {
            __u64 word;
            if (returned && kept->at[s] && kept->wide > w * 64 &&
                !bpf_probe_read_user(&word, 8, (void *)(kept->at[s] + w * 8))) {
                found += ones(word);
                again += ones(word & kept->selected[w]);
                all |= word;
            }
        }
        kept->selected[w] = all;
    }
    return found == returned ? again : NOT_COMPARED;
}

/* Returns how many of the events were returned by the thread's last call of the kind too, in any set; keeps them for
 * the next. */
static __always_inline int compare(__u32 kind, struct poll_stat *stat, struct poll_return *kept, __u32 returned)
{
    /* Events of another epoll set are none of this one's: after two calls on, nothing is of the call before. */
    kept->calls += kept->set == stat->set ? 1 : 2;
    kept->set = stat->set;
    switch (kind) {
    case POLL_SELECT:
    case POLL_PSELECT6:
        return select_again(kept, returned);
    case POLL_IO_URING_ENTER:
        return NOT_COMPARED;
    }
    if (!returned)
        return 0;
    if (returned > MOST_EVENTS)
        return NOT_COMPARED;
    bool polled = kind == POLL_POLL || kind == POLL_PPOLL;
    kept->events = returned;
    bool found = polled ? find_polled(kept, stat->row, stat->requested) : find_epolled(kept);
    return found ? count_again(stat->row) : NOT_COMPARED;
}

/* How many events of the call were left over: of descriptors that the call before returned too, and there before the
 * thread had to block. NOT_COMPARED where that is not known. */
static __always_inline int left_over(__u32 kind, struct poll_stat *stat, __u64 switches, long returned)
{
    struct poll_return *kept = return_of(stat);
    if (!kept)
        return NOT_COMPARED;
    bool was_known = kept->known;
    int again = compare(kind, stat, kept, returned > 0 ? returned : 0);
    kept->known = again != NOT_COMPARED;
    if (returned <= 0 || kept->switches != switches)
        return 0;
    return was_known ? again : NOT_COMPARED;
}
