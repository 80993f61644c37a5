// What MicroPython asks of the machine: clock and sleep. main.c has the rest.

#include <stdint.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t mp_hal_time_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
static inline uint64_t mp_hal_monotonic_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
static inline unsigned long mp_hal_ticks_ms(void) { return mp_hal_monotonic_us() / 1000; }
static inline unsigned long mp_hal_ticks_us(void) { return mp_hal_monotonic_us(); }
static inline unsigned long mp_hal_ticks_cpu(void) { return mp_hal_monotonic_us(); }
static inline void mp_hal_delay_us(unsigned long us) {
    struct timespec span = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&span, 0);
}
static inline void mp_hal_delay_ms(unsigned long ms) {
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&span, 0);
}
static inline void mp_hal_set_interrupt_char(char c) { (void)c; }
