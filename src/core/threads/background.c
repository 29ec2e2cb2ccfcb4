/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that works ahead. Its state consists of two counters, of permitted and of finished pieces, protected by one
   lock. */
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask */

#include "core/threads/background.h"

#include "core/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

struct mrc_background {
    mercer_context *context; /* used only by the owner's thread */
    mrc_background_work work;
    void *argument;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t changed;
    int64_t permitted; /* pieces 0 .. permitted - 1 may be done */
    int64_t done;      /* pieces 0 .. done - 1 are done */
    bool running;      /* piece number `done` is being worked on */
    bool ending;
};

/* The thread: works on permitted pieces in order until the owner stops it. The lock is released during the work. */
static void *serve_background(void *argument)
{
    mrc_background *self = argument;
    pthread_mutex_lock(&self->lock);
    while (!self->ending) {
        if (self->done >= self->permitted) {
            pthread_cond_wait(&self->changed, &self->lock);
            continue;
        }
        int64_t piece = self->done;
        self->running = true;
        pthread_mutex_unlock(&self->lock);
        self->work(self->argument, piece);
        pthread_mutex_lock(&self->lock);
        self->running = false;
        self->done++;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* Starts the thread with all signals blocked, so that the program's own threads handle them. Returns 0 or an error. */
static int start_without_signals(mrc_background *self)
{
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return 1;
    int error = pthread_create(&self->thread, NULL, serve_background, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

mercer_status mrc_background_start(mrc_background **out, mercer_context *context, mrc_background_work work,
                                   void *argument)
{
    mrc_background *self;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &self, 1, sizeof *self, "a background thread"));
    self->context = context, self->work = work, self->argument = argument;
    int error = pthread_mutex_init(&self->lock, NULL);
    if (error == 0) {
        error = pthread_cond_init(&self->changed, NULL);
        if (error == 0) {
            error = start_without_signals(self);
            if (error) pthread_cond_destroy(&self->changed);
        }
        if (error) pthread_mutex_destroy(&self->lock);
    }
    if (error) {
        mrc_free(context, self);
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED, "cannot start a background thread: %s", strerror(error));
    }
    *out = self;
    return MERCER_OK;
}

void mrc_background_permit(mrc_background *self, int64_t pieces)
{
    pthread_mutex_lock(&self->lock);
    if (pieces > self->permitted) self->permitted = pieces;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

void mrc_background_wait(mrc_background *self, int64_t piece)
{
    pthread_mutex_lock(&self->lock);
    while (self->done <= piece) pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

void mrc_background_reset(mrc_background *self, int64_t piece)
{
    pthread_mutex_lock(&self->lock);
    self->permitted = 0;
    while (self->running) pthread_cond_wait(&self->changed, &self->lock);
    self->permitted = self->done = piece;
    pthread_mutex_unlock(&self->lock);
}

void mrc_background_stop(mrc_background *self)
{
    if (!self) return;
    pthread_mutex_lock(&self->lock);
    self->ending = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    mrc_free(self->context, self);
}
