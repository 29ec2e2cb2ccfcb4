/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conformance: compares every backend of the registry, on every instruction set of this machine, with the scalar double
 * reference, for every kernel, combination of element types, and shape. Prints, per kernel and types, the largest share
 * of the allowed error that each target used.
 *
 *   conformance [--list] [--filter TEXT] [--backend NAME] [--verbose]      exit status 0 if nothing failed
 *
 * A backend whose device is missing is skipped, unless --backend names it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cases.h"

#include "core/matrix.h"
#include "kernels/kernel.h"
#include "support/levels.h"
#include "support/sanitized.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TARGETS = 16, SMALL_PROBLEM = 5000, WARN_PERCENT = 50 };

typedef struct settings {
    bool list, verbose;
    const char *filter, *backend;
} settings;

typedef struct tally {
    int passed, failed, unsupported, warned;
} tally;

/* One line of the output table: a kernel with element types, on all targets. */
typedef struct line {
    const char *kernel_name;
    char types_name[32];
    mercer_kernel kernel;
    types types;
    verdict verdicts[MAX_TARGETS];
    bool unsupported[MAX_TARGETS];
    bool bits_differ[MAX_TARGETS];
} line;

/* ---- Guard pages --------------------------------------------------------------------------------------------- */

static char running[256]; /* case to report when a guard page is accessed */

static void on_guard_page(int signal_number)
{
    (void)signal_number;
    static const char text[] = "FAIL memory outside of the operands was touched: ";
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0 || write(STDOUT_FILENO, running, strlen(running)) < 0) _exit(3);
    _exit(1);
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

/* Create the backend for an instruction set; return false if its device is missing or it has no code for the set. */
static bool open_target(target *t, const mrc_backend_ops *ops, int isa, const settings *chosen)
{
    /* Alternate one and two threads, so that the bitwise comparison covers both partitions of the work. */
    *t = (target){.backend_name = ops->name, .context = {.threads = 1 + isa % 2, .isa = (mrc_isa)isa}};
    snprintf(t->name, sizeof t->name, "%s/%s", ops->name, mrc_isa_name((mrc_isa)isa));
    mercer_status status = mrc_backend_create(&t->backend, &t->context, ops->name);
    if (status != MERCER_OK) {
        fprintf(stderr, "%s: %s\n", ops->name, t->context.error);
        if (chosen->backend || !is_left_out(ops, status)) exit(2);
        return false;
    }
    if (follows_level(t->backend)) return true;
    mrc_backend_free(t->backend);
    return false;
}

static int open_targets(target *targets, const settings *chosen)
{
    int count = 0;
    for (int b = 0; mrc_backend_registry[b]; b++) {
        const mrc_backend_ops *ops = mrc_backend_registry[b];
        int first = count, isa = 0;
        if (chosen->backend && strcmp(chosen->backend, ops->name) != 0) continue;
        while (isa <= (int)mrc_isa_best() && count < MAX_TARGETS && open_target(&targets[count], ops, isa++, chosen))
            count++;
        if (count == first + 1) snprintf(targets[first].name, sizeof targets[first].name, "%s", ops->name);
    }
    return count;
}

static int close_targets(target *targets, int count)
{
    int leaks = 0;
    for (int i = 0; i < count; i++) {
        mrc_backend_free(targets[i].backend);
        if (targets[i].context.bytes_now == 0) continue;
        printf("FAIL %s: %lld bytes were not released\n", targets[i].name, (long long)targets[i].context.bytes_now);
        leaks++;
    }
    return leaks;
}

/* ---- One line of the table ----------------------------------------------------------------------------------- */

static bool supports(const target *t, const types *which)
{
    int accepted = t->backend->ops->capabilities(t->backend, false).point_dtypes;
    return (accepted & 1 << which->x) && (accepted & 1 << which->z);
}

static void merge(verdict *all, const verdict *one)
{
    if (one->share >= all->share) *all = *one;
}

static void run_shape(line *self, const target *targets, int count, int index, bool at_end, const settings *chosen)
{
    const shape *s = &all_shapes[index];
    problem *p = problem_make(&self->kernel, &self->types, s, index, at_end);
    bool small = s->m * s->p * (s->d + s->c) <= SMALL_PROBLEM;
    uint64_t first_bits = 0, bits;
    int first = -1;
    for (int i = 0; i < count; i++) {
        if (self->unsupported[i]) continue;
        snprintf(running, sizeof running, "%s %s on %s, m=%lld p=%lld d=%lld c=%lld\n", self->kernel_name,
                 self->types_name, targets[i].name, (long long)s->m, (long long)s->p, (long long)s->d, (long long)s->c);
        verdict v = run_problem(&targets[i], p, small, &bits);
        merge(&self->verdicts[i], &v);
        if (v.share > 1 || (chosen->verbose && v.share > 0))
            printf("%s %s %s on %s: %.0f%% %s\n", v.share > 1 ? "FAIL" : "    ", self->kernel_name, self->types_name,
                   targets[i].name, 100 * v.share, v.text);
        /* All instruction sets of a backend do the same operations in the same order: results are bitwise identical. */
        if (first < 0 || strcmp(targets[i].backend_name, targets[first].backend_name) != 0)
            first = i, first_bits = bits;
        else if (bits != first_bits && !self->bits_differ[i]) {
            self->bits_differ[i] = true;
            printf("FAIL %s %s: %s and %s differ in bits, m=%lld p=%lld d=%lld c=%lld\n", self->kernel_name,
                   self->types_name, targets[first].name, targets[i].name, (long long)s->m, (long long)s->p,
                   (long long)s->d, (long long)s->c);
        }
    }
    problem_free(p);
}

static void print_line(const line *self, int count, tally *sum)
{
    int worst = 0;
    printf("%-19s %-16s", self->kernel_name, self->types_name);
    for (int i = 0; i < count; i++) {
        double percent = 100 * self->verdicts[i].share;
        bool bad = percent > 100 || self->bits_differ[i];
        char cell[24];
        if (self->unsupported[i])
            snprintf(cell, sizeof cell, "unsupported");
        else if (bad)
            snprintf(cell, sizeof cell, "%s", percent > 100 ? "FAIL" : "BITS");
        else
            snprintf(cell, sizeof cell, "%.1f%s", percent, percent > WARN_PERCENT ? "!" : "");
        printf(" %14s", cell);
        sum->unsupported += self->unsupported[i];
        sum->failed += !self->unsupported[i] && bad;
        sum->passed += !self->unsupported[i] && !bad;
        sum->warned += !bad && percent > WARN_PERCENT;
        if (self->verdicts[i].share > self->verdicts[worst].share) worst = i;
    }
    printf("   %.60s\n", self->verdicts[worst].text);
}

static void run_line(line *self, const target *targets, int count, const settings *chosen, tally *sum)
{
    for (int i = 0; i < count; i++) self->unsupported[i] = !supports(&targets[i], &self->types);
    static int lines; /* when only some shapes are run, each line starts with a different one */
    /* A power of every difference takes many times as long as a product, also in the reference. */
    bool powers = mrc_kernel_argument(&self->kernel) == MRC_ON_DIFFERENCES;
    int stride = getenv("MERCER_TEST_LONG") ? 1 : SANITIZED ? 12 : powers ? 7 : 4;
    for (int index = lines++ % stride; index < all_shapes_count; index += stride) {
        const shape *s = &all_shapes[index];
        run_shape(self, targets, count, index, true, chosen);
        if (s->m * s->p * (s->d + s->c) <= SMALL_PROBLEM) run_shape(self, targets, count, index, false, chosen);
    }
    print_line(self, count, sum);
}

static void print_header(const target *targets, int count)
{
    puts("Largest share of the allowed error, in percent (over 50: !, over 100: FAIL), and where.");
    puts("A double result that is stored as float is allowed one rounding, which a perfect one uses up to 100.");
    printf("\n%-19s %-16s", "kernel", "XxZ.W>out");
    for (int i = 0; i < count; i++) printf(" %14s", targets[i].name);
    printf("   worst\n");
}

static void run_all(const target *targets, int count, const settings *chosen, tally *sum)
{
    for (int k = 0; k < case_kernel_count(); k++) {
        for (int t = 0; t < all_types_count; t++) {
            line self = {.kernel_name = case_kernel_name(k), .kernel = case_kernel(k), .types = all_types[t]};
            case_types_name(&all_types[t], self.types_name);
            char name[64];
            snprintf(name, sizeof name, "%s %s", self.kernel_name, self.types_name);
            if (chosen->filter && !strstr(name, chosen->filter)) continue;
            if (chosen->list)
                puts(name);
            else
                run_line(&self, targets, count, chosen, sum);
        }
    }
}

static settings read_arguments(int argc, char **argv)
{
    settings chosen = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            chosen.list = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            chosen.verbose = true;
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            chosen.filter = argv[++i];
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            chosen.backend = argv[++i];
        else {
            fprintf(stderr, "usage: %s [--list] [--filter TEXT] [--backend NAME] [--verbose]\n", argv[0]);
            exit(2);
        }
    }
    return chosen;
}

int main(int argc, char **argv)
{
    static target targets[MAX_TARGETS];
    settings chosen = read_arguments(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0); /* flush each line, because an access to a guard page ends the program */
    signal(SIGSEGV, on_guard_page);
    signal(SIGBUS, on_guard_page);
    tally sum = {0};
    int count = open_targets(targets, &chosen);
    if (!chosen.list) print_header(targets, count);
    run_all(targets, count, &chosen, &sum);
    sum.failed += close_targets(targets, count);
    if (chosen.list) return 0;
    for (int isa = (int)mrc_isa_best() + 1; isa < MRC_ISA_COUNT; isa++)
        printf("unsupported here: instruction set %s\n", mrc_isa_name((mrc_isa)isa));
    if (sum.unsupported) printf("%d unsupported\n", sum.unsupported);
    if (sum.warned) printf("%d above %d%% of what is allowed\n", sum.warned, (int)WARN_PERCENT);
    printf("%d passed, %d failed\n", sum.passed, sum.failed);
    return sum.failed || sum.passed == 0;
}
