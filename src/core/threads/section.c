/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the threads inside BLAS. Two events need care, because other threads may be inside:
 *
 *   fork()  The child has only the thread that called fork(). The other threads are subtracted from the count, and
 *           the lock, which one of them might have held, is initialized again.
 *   exit()  OpenBLAS releases its buffers when it is unloaded, and a thread that still uses a buffer would crash. So
 *           exit waits for the threads inside and admits no further threads.
 */
#define _POSIX_C_SOURCE 200809L /* pthread_atfork */

#include "core/threads/parallel.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    int inside;    /* number of sections entered and not yet left, over all threads */
    bool unclosed; /* a fork removed threads that were inside */
    bool ending;   /* the process exits: no thread may enter */
} section = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

static _Thread_local int mine; /* number of sections that this thread has entered and not yet left */

static void before_fork(void)
{
    pthread_mutex_lock(&section.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&section.lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&section.lock, NULL);
    pthread_cond_init(&section.left, NULL);
    section.unclosed |= section.inside > 0 && mine == 0;
    section.inside = mine;
}

/* Registers the fork handlers when the library is loaded: they must exist before any thread takes the lock. */
#if defined(__GNUC__)
__attribute__((constructor))
#endif
static void
know_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child); /* fails only without memory */
}

#if defined(__GNUC__)
__attribute__((destructor))
#endif
static void
end_section(void)
{
    pthread_mutex_lock(&section.lock);
    section.ending = true;
    while (section.inside > mine) pthread_cond_wait(&section.left, &section.lock);
    pthread_mutex_unlock(&section.lock);
}

void mrc_section_enter(void (*open)(bool unclosed))
{
    pthread_mutex_lock(&section.lock);
    /* the process is exiting: block this thread until the process ends */
    while (section.ending && mine == 0) pthread_cond_wait(&section.left, &section.lock);
    if (section.inside++ == 0) {
        open(section.unclosed);
        section.unclosed = false;
    }
    mine++;
    pthread_mutex_unlock(&section.lock);
}

void mrc_section_leave(void (*close)(void))
{
    pthread_mutex_lock(&section.lock);
    mine--;
    if (--section.inside == 0 && !section.ending) close();
    if (section.ending) pthread_cond_broadcast(&section.left);
    pthread_mutex_unlock(&section.lock);
}
