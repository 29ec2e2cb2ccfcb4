/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of threads: who has come, behind one lock, counted anew for every round. */
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
    pthread_mutex_t lock; /* holds the rest */
    pthread_cond_t changed;
    int parties, users; /* users: that have not released it */
    int here;           /* parties that have come in this round */
    int64_t round;
    struct timespec news; /* when somebody last came */
    bool left, silent;    /* it is over: somebody has left; some did not come */
    mrc_farewell words;   /* of the first to leave */
    unsigned char come[]; /* (parties) in this round */
};

/* No context's allocator may be asked: the last one to release it may be another context's thread. */
static const mercer_allocator common = {0};

mrc_barrier *mrc_barrier_create(int parties)
{
    size_t bytes = sizeof(mrc_barrier) + (size_t)parties;
    mrc_barrier *self = mrc_raw_alloc(&common, bytes);
    if (!self) return NULL;
    memset(self, 0, bytes);
    self->parties = self->users = parties;
    pthread_condattr_t steady; /* patience does not depend on somebody setting the clock */
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

/* Under the lock, which is given up meanwhile: until the round is over, or everything is. */
static void await(mrc_barrier *self, int64_t round, double patience)
{
    while (self->round == round && !self->left && !self->silent) {
        if (patience <= 0) {
            pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        struct timespec limit = later(self->news, patience);
        if (pthread_cond_timedwait(&self->changed, &self->lock, &limit) == ETIMEDOUT && self->round == round &&
            passed(later(self->news, patience))) {
            self->silent = true;
            pthread_cond_broadcast(&self->changed);
        }
    }
}

/* What those are told who did not meet: `came` in the round that nobody finished, or when all was over. */
static mrc_met end_of(const mrc_barrier *self, bool came, unsigned char *missing, mrc_farewell *words)
{
    if (came && self->silent) { /* also when one of those who waited has left since: for the same reason */
        for (int i = 0; i < self->parties; i++) missing[i] = !self->come[i];
        return MRC_MET_SILENT;
    }
    if (!self->left) return MRC_MET_LATE;
    *words = self->words;
    return MRC_MET_LEFT;
}

mrc_met mrc_barrier_wait(mrc_barrier *self, int party, double patience, unsigned char *missing, mrc_farewell *words)
{
    mrc_met met = MRC_MET;
    pthread_mutex_lock(&self->lock);
    int64_t round = self->round;
    bool came = !self->left && !self->silent;
    if (came) {
        self->come[party] = 1;
        clock_gettime(CLOCK_MONOTONIC, &self->news);
        if (++self->here == self->parties) {
            self->here = 0;
            memset(self->come, 0, (size_t)self->parties);
            self->round++;
            pthread_cond_broadcast(&self->changed);
        } else {
            await(self, round, patience);
        }
    }
    if (self->round == round) met = end_of(self, came, missing, words);
    pthread_mutex_unlock(&self->lock);
    return met;
}

void mrc_barrier_leave(mrc_barrier *self, const mrc_farewell *words)
{
    pthread_mutex_lock(&self->lock);
    if (!self->left) self->words = *words;
    self->left = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

bool mrc_barrier_has_left(mrc_barrier *self, mrc_farewell *words)
{
    pthread_mutex_lock(&self->lock);
    bool left = self->left;
    if (left) *words = self->words;
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
