/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Two threads of some 40 ms that use one lock now and then.
 */
#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared, table[2][1 << 15];

static void *work(void *number)
{
    uint64_t *own = table[(intptr_t)number];
    for (uint64_t i = 0; i < 1000000; i++) {
        own[i * 2654435761u % (sizeof table[0] / 8)] += i;
        if (i % 4096 == 0) {
            pthread_mutex_lock(&lock);
            shared++;
            pthread_mutex_unlock(&lock);
        }
    }
    return 0;
}

int main(void)
{
    pthread_t other;
    if (pthread_create(&other, 0, work, (void *)1))
        return 1;
    work((void *)0);
    return pthread_join(other, 0) || shared != 490;
}
