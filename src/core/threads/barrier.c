/* SPDX-License-Identifier: BSD-3-Clause */
/* A barrier for threads: one lock, one condition variable, and a count of arrivals that restarts in every round. */
#define _POSIX_C_SOURCE 200809L /* pthread_condattr_setclock */

#include "core/threads/barrier.h"

#include "core/memory.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

struct mrc_barrier {
    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t changed;
    int parties, users; /* users: number of parties that have not released the barrier */
    int here;           /* number of parties that have arrived in the current round */
    int64_t round;
    struct timespec last_arrival;
    bool left, silent;        /* left: a party has left; silent: a wait timed out. Either closes the barrier */
    mrc_exit_message message; /* message of the first party to leave */
    unsigned char arrived[];  /* (parties) 1: the party has arrived in this round */
};

/* The default allocator instead of a context's: the thread that frees the barrier may belong to another context. */
static const mercer_allocator common = {0};

mrc_barrier *mrc_barrier_create(int parties)
{
    size_t bytes = sizeof(mrc_barrier) + (size_t)parties;
    mrc_barrier *self = mrc_raw_alloc(&common, bytes);
    if (!self) return NULL;
    memset(self, 0, bytes);
    self->parties = self->users = parties;
    pthread_condattr_t steady; /* waiting times do not depend on the wall clock */
    bool made = pthread_condattr_init(&steady) == 0;
    if (made) {
        made =
            pthread_condattr_setclock(&steady, CLOCK_MONOTONIC) == 0 && pthread_cond_init(&self->changed, &steady) == 0;
        pthread_condattr_destroy(&steady);
    }
    if (made && pthread_mutex_init(&self->lock, NULL) == 0) return self;
    if (made) pthread_cond_destroy(&self->changed);
    mrc_raw_free(&common, self);
    return NULL;
}

/* Returns a time plus a number of seconds. */
static struct timespec later(struct timespec time, double seconds)
{
    double whole = floor(seconds);
    time.tv_sec += (time_t)whole;
    time.tv_nsec += (long)((seconds - whole) * 1e9);
    if (time.tv_nsec >= 1000000000) time.tv_sec++, time.tv_nsec -= 1000000000;
    return time;
}

static bool passed(struct timespec limit)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > limit.tv_sec || (now.tv_sec == limit.tv_sec && now.tv_nsec >= limit.tv_nsec);
}

/* Waits until the round is complete or the barrier is closed. The caller holds the lock, which is released while
   waiting. */
static void await_barrier(mrc_barrier *self, int64_t round, double patience)
{
    while (self->round == round && !self->left && !self->silent) {
        if (patience <= 0) {
            pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        struct timespec limit = later(self->last_arrival, patience);
        if (pthread_cond_timedwait(&self->changed, &self->lock, &limit) == ETIMEDOUT && self->round == round &&
            passed(later(self->last_arrival, patience))) {
            self->silent = true;
            pthread_cond_broadcast(&self->changed);
        }
    }
}

/* Returns the result for a party whose round was not completed. arrived: the party arrived before the barrier was
   closed. */
static mrc_barrier_result end_of(const mrc_barrier *self, bool arrived, unsigned char *missing,
                                 mrc_exit_message *message)
{
    if (arrived && self->silent) { /* report the timeout, even if a party has left since then */
        for (int i = 0; i < self->parties; i++) missing[i] = !self->arrived[i];
        return MRC_BARRIER_TIMEOUT;
    }
    if (!self->left) return MRC_BARRIER_CLOSED;
    *message = self->message;
    return MRC_BARRIER_LEFT;
}

/* The last party to arrive increments `round` and wakes the others, which recognize the end of their round by the
   changed number. A completed round counts as passed, even if a party leaves immediately afterwards. */
mrc_barrier_result mrc_barrier_wait(mrc_barrier *self, int party, double patience, unsigned char *missing,
                                    mrc_exit_message *message)
{
    mrc_barrier_result result = MRC_BARRIER_PASSED;
    pthread_mutex_lock(&self->lock);
    int64_t round = self->round;
    bool arrived = !self->left && !self->silent;
    if (arrived) {
        self->arrived[party] = 1;
        clock_gettime(CLOCK_MONOTONIC, &self->last_arrival);
        if (++self->here == self->parties) {
            self->here = 0;
            memset(self->arrived, 0, (size_t)self->parties);
            self->round++;
            pthread_cond_broadcast(&self->changed);
        } else {
            await_barrier(self, round, patience);
        }
    }
    if (self->round == round) result = end_of(self, arrived, missing, message);
    pthread_mutex_unlock(&self->lock);
    return result;
}

void mrc_barrier_leave(mrc_barrier *self, const mrc_exit_message *message)
{
    pthread_mutex_lock(&self->lock);
    if (!self->left) self->message = *message;
    self->left = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

bool mrc_barrier_has_left(mrc_barrier *self, mrc_exit_message *message)
{
    pthread_mutex_lock(&self->lock);
    bool left = self->left;
    if (left) *message = self->message;
    pthread_mutex_unlock(&self->lock);
    return left;
}

void mrc_barrier_release(mrc_barrier *self)
{
    pthread_mutex_lock(&self->lock);
    int users = --self->users;
    pthread_mutex_unlock(&self->lock);
    if (users > 0) return;
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    mrc_raw_free(&common, self);
}
