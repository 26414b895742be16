/* Ordered index as a skip list: successor queries. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N 200000u
#define SPACE (N * 16u)
#define LEVELS 10
#define QUERIES 260000u

struct skip {
    uint32_t key, value;
    uint32_t height, pad;
    struct skip *fwd[];
};

static uint64_t s = 77;
static uint32_t rnd32(void)
{
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(s >> 32);
}

static uint32_t value_of(uint32_t key)
{
    return (key ^ (key >> 7)) * 2654435761u;
}

__attribute__((noinline)) static uint64_t skip_successor(struct skip *const *head, uint32_t key)
{
    struct skip *const *fwd = head;
    for (int l = LEVELS - 1; l >= 0; l--)
        while (fwd[l] && fwd[l]->key < key)
            fwd = fwd[l]->fwd;
    return fwd[0] ? fwd[0]->value : 0;
}

int main(void)
{
    static struct skip *head[LEVELS], **last[LEVELS];
    uint32_t *perm = malloc(N * sizeof *perm);
    uint8_t *height = malloc(N);
    size_t *place = malloc(N * sizeof *place), bytes = 0;
    for (uint32_t i = 0; i < N; i++) {
        perm[i] = i;
        height[i] = 1;
        for (uint32_t r = rnd32(); (r & 3) == 0 && height[i] < LEVELS; r >>= 2)
            height[i]++;
    }
    for (uint32_t i = N - 1; i > 0; i--) {
        uint32_t j = rnd32() % (i + 1), t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
    for (uint32_t i = 0; i < N; i++) { /* as if inserted in the order of perm */
        place[perm[i]] = bytes;
        bytes += sizeof(struct skip) + height[perm[i]] * sizeof(void *) + 16;
    }
    char *arena = malloc(bytes);
    for (int l = 0; l < LEVELS; l++)
        last[l] = &head[l];
    for (uint32_t i = 0; i < N; i++) {
        struct skip *n = (struct skip *)(arena + place[i]);
        n->key = i * 16 + rnd32() % 16;
        n->value = value_of(n->key);
        n->height = height[i];
        for (int l = 0; l < height[i]; l++) {
            n->fwd[l] = NULL;
            *last[l] = n;
            last[l] = &n->fwd[l];
        }
    }
    uint32_t *found = malloc(QUERIES * sizeof *found);
    for (uint32_t i = 0; i < QUERIES; i++)
        found[i] = skip_successor(head, rnd32() % SPACE);
    uint64_t sum = 1469598103934665603ull; /* the answers as text, hashed */
    for (uint32_t i = 0; i < QUERIES; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "%u %08x %.3f\n", i, found[i], found[i] / 1024.0);
        for (int k = 0; k < n; k++)
            sum = (sum ^ (uint8_t)line[k]) * 1099511628211ull;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
