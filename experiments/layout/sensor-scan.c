/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table of sensors; the alarm check reads one field of each, over and over. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NSENSOR 49152
static uint64_t seed = 7;
static uint32_t rnd(void) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return seed >> 33; }
struct sensor {
    uint32_t id, kind;
    char label[32];
    double calib_gain, calib_offset;
#ifndef FIXED
    float reading;
#endif
    uint32_t unit;
    double lat, lon, height;
    uint64_t installed, serviced;
    uint32_t firmware, battery;
};                                   /* 112 bytes plain */
struct station {
    size_t count;
    struct sensor *sensors;
#ifdef FIXED
    float *reading;
#endif
};
#ifdef FIXED
#define READING(st, i) ((st)->reading[i])
#else
#define READING(st, i) ((st)->sensors[i].reading)
#endif
__attribute__((noinline)) static void station_init(struct station *st, size_t n)
{
    st->count = n;
    st->sensors = calloc(n, sizeof *st->sensors);
#ifdef FIXED
    st->reading = calloc(n, sizeof *st->reading);
#endif
    for (size_t i = 0; i < n; i++) {
        struct sensor *s = &st->sensors[i];
        s->id = (uint32_t)i; s->kind = rnd() & 3; s->calib_gain = 1.0 + (rnd() & 7) * .01;
        memcpy(s->label, "sensor", 7); s->lat = rnd() % 90; s->lon = rnd() % 180; s->battery = rnd() % 100;
        READING(st, i) = (float)(rnd() % 10000) * 0.01f;
    }
}
__attribute__((noinline)) static size_t count_above(const struct station *st, float limit)
{
    size_t n = 0;
    for (size_t i = 0; i < st->count; i++)
        if (READING(st, i) > limit) n++;
    return n;
}
__attribute__((noinline)) static double battery_report(const struct station *st)
{
    double b = 0;
    for (size_t i = 0; i < st->count; i += 1 + (i & 3)) b += st->sensors[i].battery * st->sensors[i].calib_gain;
    return b;
}
int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    struct station st;
    station_init(&st, NSENSOR);
    size_t alarms = 0;
    for (int r = 0; r < rounds; r++) alarms += count_above(&st, (float)(r * 13 % 100));
    printf("%zu %.3f\n", alarms, battery_report(&st));
    return 0;
}
