/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrc_parallel_for, on one pool of threads for the whole process.
 *
 * A loop is a struct on its caller's stack. The list of open loops contains every loop that can use more workers. A
 * pool thread that joins an open loop gets a worker number and takes pieces, one at a time, until none is left. The
 * caller is worker 0 and returns when no thread works on its loop any more. The caller does all pieces that no thread
 * takes, so concurrent loops, and threads that cannot be started, need no special case.
 *
 * Threads are started when a loop can first use them, and exist until exit. A thread without work spins for
 * SPIN_SECONDS, because the next loop usually comes soon, and then sleeps. If the pool has at least as many threads as
 * there are processors, threads without work sleep at once: spinning would take a processor from a thread that has
 * work.
 *
 * A child process has only the thread that called fork(), so the child's pool begins empty. If a piece of a loop calls
 * fork(), the child must not continue the loop. The threads are joined at exit, or when the library is unloaded.
 */
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask */

#include "core/threads/parallel.h"

#include "core/clock.h"
#include "core/cpuinfo.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { MAX_THREADS = 256, LOOKS_PER_CLOCK = 16 };
#define SPIN_SECONDS 40e-6

typedef struct loop {
    mrc_work work;
    void *argument;
    int64_t count;
    atomic_llong next; /* number of the next piece to take */
    /* workers: largest number of workers, with the caller; taken: number of pool threads that have joined, under the
       pool's lock */
    int workers, taken;
    int counted;        /* this loop's contribution to pool.wanted */
    atomic_int helpers; /* pool threads working on this loop; changed under the pool's lock, read without it */
    struct loop *below; /* next in the list of open loops */
} loop;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work_came, helper_left;
    pthread_t threads[MAX_THREADS];
    int started;          /* number of threads in the pool */
    int asleep;           /* number of sleeping threads */
    int callers_asleep;   /* number of callers asleep until their last helper leaves */
    int wanted;           /* number of helpers that all running loops together could use */
    loop *open;           /* list of open loops: loops that can use more workers */
    atomic_int open_now;  /* length of the list `open`; read without the lock while spinning for work */
    atomic_bool ending;   /* the process exits: no new threads */
    bool knows_fork;      /* the handler for forked children is registered; without it no threads are started */
    atomic_bool may_spin; /* spinning is allowed: more processors than pool threads */
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .work_came = PTHREAD_COND_INITIALIZER, .helper_left = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside_piece; /* this thread is doing a piece: nested loops run serially on it */

/* Reduces the power that a spinning thread uses, and its effect on the other thread of its core. */
static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Spins for up to SPIN_SECONDS until *value is zero (or nonzero, if zero is false). Returns whether the condition
   holds; returns false early if spinning is not allowed. */
static bool await_work(atomic_int *value, bool zero)
{
    double end = 0;
    for (int64_t look = 0; (atomic_load(value) == 0) != zero; look++) {
        if (!atomic_load(&pool.may_spin)) return false;
        relax();
        if (look % LOOKS_PER_CLOCK) continue;
        double now = mrc_seconds();
        if (end == 0) end = now + SPIN_SECONDS;
        if (now > end) return false;
    }
    return true;
}

/* Takes pieces until none is left. Helpers (pool threads) stop early at exit; the caller then does the remaining
   pieces. */
static void do_pieces(loop *self, int worker)
{
    int64_t piece;
    while (!(worker > 0 && atomic_load(&pool.ending)) && (piece = atomic_fetch_add(&self->next, 1)) < self->count)
        self->work(self->argument, piece, worker);
}

/* ---- Threads of the pool ----------------------------------------------------------------------------------------- */

/* Removes a loop from the list of open loops if the list contains it. Called with the pool's lock. */
static void close_loop(loop *self)
{
    for (loop **at = &pool.open; *at; at = &(*at)->below) {
        if (*at != self) continue;
        *at = self->below;
        atomic_fetch_sub(&pool.open_now, 1);
        return;
    }
}

/* Makes the current thread a worker of a loop. Called with the pool's lock, which is released while the thread
   works. */
static void help(loop *self)
{
    int worker = ++self->taken;
    atomic_fetch_add(&self->helpers, 1);
    if (self->taken + 1 == self->workers) close_loop(self);
    pthread_mutex_unlock(&pool.lock);
    do_pieces(self, worker);
    pthread_mutex_lock(&pool.lock);
    /* Last access to the loop: at 0 helpers its caller may return, which ends the loop's lifetime. */
    if (atomic_fetch_sub(&self->helpers, 1) == 1 && pool.callers_asleep > 0) pthread_cond_broadcast(&pool.helper_left);
}

/* A thread of the pool: helps open loops, spins for a while if no loop is open, and then sleeps. Loops nested in its
   pieces run serially. */
static void *serve_pieces(void *unused)
{
    (void)unused;
    inside_piece = true;
    pthread_mutex_lock(&pool.lock);
    while (!atomic_load(&pool.ending)) {
        if (pool.open) {
            help(pool.open);
            continue;
        }
        pthread_mutex_unlock(&pool.lock);
        bool came = await_work(&pool.open_now, false);
        pthread_mutex_lock(&pool.lock);
        if (came || pool.open || atomic_load(&pool.ending)) continue;
        pool.asleep++;
        pthread_cond_wait(&pool.work_came, &pool.lock);
        pool.asleep--;
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Resets the pool in the child of a fork, where the threads of the pool do not exist. */
static void forget_threads(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work_came, NULL);
    pthread_cond_init(&pool.helper_left, NULL);
    pool.started = pool.asleep = pool.callers_asleep = pool.wanted = 0;
    pool.open = NULL;
    atomic_store(&pool.open_now, 0);
}

/* Registers the fork handler when the library is loaded, because the handler must exist before any thread takes the
   lock. */
#if defined(__GNUC__)
__attribute__((constructor))
#endif
static void
know_forks(void)
{
    pool.knows_fork = pthread_atfork(NULL, NULL, forget_threads) == 0;
}

/* Starts as many threads as the loop can use. If several callers run loops, starts as many threads as all loops
   together can use, up to the number of processors. Starts fewer if the system refuses. */
static void start_threads(int wanted)
{
    int most = pool.wanted > wanted && pool.wanted > pool.started ? mrc_processors() - 1 : wanted;
    if (most > pool.wanted) most = pool.wanted;
    if (most > wanted) wanted = most;
    if (wanted > MAX_THREADS) wanted = MAX_THREADS;
    if (pool.started >= wanted || !pool.knows_fork) return;
    sigset_t all, before; /* the new threads block all signals, so that the program's own threads handle them */
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
    while (pool.started < wanted && pthread_create(&pool.threads[pool.started], NULL, serve_pieces, NULL) == 0)
        pool.started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store(&pool.may_spin, pool.started < mrc_processors());
}

#if defined(__GNUC__)
__attribute__((destructor))
#endif
static void
end_threads(void)
{
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.ending, true);
    pthread_cond_broadcast(&pool.work_came);
    int started = pool.started;
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < started; i++) /* do not join this thread itself: a piece may have called exit() */
        if (!pthread_equal(pool.threads[i], pthread_self())) pthread_join(pool.threads[i], NULL);
}

/* ---- Loops --------------------------------------------------------------------------------------------------- */

/* Starts threads for a loop, adds it to the list, and wakes sleeping threads. */
static void open_loop(loop *self)
{
    pthread_mutex_lock(&pool.lock);
    if (!atomic_load(&pool.ending)) {
        self->counted = self->workers - 1;
        pool.wanted += self->counted;
        start_threads(self->workers - 1);
        self->below = pool.open;
        pool.open = self;
        atomic_fetch_add(&pool.open_now, 1);
    }
    int wake = pool.asleep < self->workers - 1 ? pool.asleep : self->workers - 1;
    if (wake == pool.asleep && wake > 1)
        pthread_cond_broadcast(&pool.work_came);
    else
        for (int i = 0; i < wake; i++) pthread_cond_signal(&pool.work_came);
    pthread_mutex_unlock(&pool.lock);
}

/* Waits until no helper works on the loop. */
static void finish_loop(loop *self)
{
    pthread_mutex_lock(&pool.lock);
    close_loop(self); /* no further thread joins */
    pool.wanted -= self->counted;
    pthread_mutex_unlock(&pool.lock);
    if (await_work(&self->helpers, true)) return;
    pthread_mutex_lock(&pool.lock);
    pool.callers_asleep++;
    while (atomic_load(&self->helpers) > 0) pthread_cond_wait(&pool.helper_left, &pool.lock);
    pool.callers_asleep--;
    pthread_mutex_unlock(&pool.lock);
}

/* The caller is a worker of its own loop, so a loop ends even if no thread of the pool joins it. Pieces are taken from
   a shared counter; the order in which they run is not determined. */
void mrc_parallel_for(int threads, int64_t count, mrc_work work, void *argument)
{
    int used = count < threads ? (int)count : threads;
    if (used <= 1 || inside_piece) {
        for (int64_t i = 0; i < count; i++) work(argument, i, 0);
        return;
    }
    loop self = {.work = work, .argument = argument, .count = count, .workers = used};
    atomic_init(&self.next, 0);
    atomic_init(&self.helpers, 0);
    open_loop(&self);
    inside_piece = true;
    do_pieces(&self, 0);
    inside_piece = false;
    finish_loop(&self);
}
