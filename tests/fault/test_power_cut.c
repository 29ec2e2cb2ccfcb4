/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulates a power failure at every point of saving a model and of a training run that writes checkpoints. The system
 * calls are recorded. After each of them, the disk may hold any of these states:
 *
 *   bytes of a file      the state at its last fsync, plus all, none, all but one, or only one of the writes since
 *                        then; the file has its new length or its old one
 *   names in a folder    the state at its last fsync, plus any subset of the changes since then
 *
 * In each of these states the file must have its old bytes or its new ones. As a check of the test itself, the same
 * replay without the fsync events must find states in which the file has neither.
 */
#include "support/datasets.h"

#include "support/sources.h"

#include "core/file/system.h"

#include <limits.h>

enum { MOST_EVENTS = 4000, MOST_FILES = 200, MOST_OPEN = 1024, MOST_NAMES = 6 };

typedef enum event_kind { CREATED, WRITTEN, CUT, SYNCED, RENAMED, REMOVED, FOLDER_SYNCED, DONE } event_kind;

typedef struct event {
    event_kind kind;
    int file;                /* number of the file */
    char name[NAME_MAX + 1]; /* CREATED, REMOVED, RENAMED: file name */
    char to[NAME_MAX + 1];   /* RENAMED: new file name */
    unsigned char *data;     /* WRITTEN: copy of the data */
    int64_t offset, bytes;   /* WRITTEN: position and size of the data; CUT: bytes is the new file size */
} event;

static event events[MOST_EVENTS];
static int event_count, file_count;
static mrc_system real;
static int file_of[MOST_OPEN];   /* (descriptors) index of the open file; -1: none, -2: the folder */
static int64_t place[MOST_OPEN]; /* (descriptors) offset of the next write */
static struct {
    char name[NAME_MAX + 1];
    int file;
} names[MOST_FILES]; /* directory entries during replay */

static bool is_inside(const char *path)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

static const char *base_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static event *record(event_kind kind, int file)
{
    assert_true(event_count < MOST_EVENTS);
    events[event_count] = (event){.kind = kind, .file = file};
    return &events[event_count++];
}

static int rec_open(const char *path, int flags, mode_t mode)
{
    int made = real.open(path, flags, mode);
    if (made < 0) return made;
    assert_true(made < MOST_OPEN);
    file_of[made] = -1;
    if (!is_inside(path)) return made;
    if (flags & O_DIRECTORY) file_of[made] = -2;
    if (flags & O_CREAT) {
        file_of[made] = file_count++;
        place[made] = 0;
        snprintf(record(CREATED, file_of[made])->name, NAME_MAX, "%s", base_of(path));
    }
    return made;
}

static void note_write(int descriptor, const void *data, ssize_t bytes, int64_t offset)
{
    if (bytes <= 0 || file_of[descriptor] < 0) return;
    event *made = record(WRITTEN, file_of[descriptor]);
    made->data = malloc((size_t)bytes);
    memcpy(made->data, data, (size_t)bytes);
    made->offset = offset, made->bytes = bytes;
}

static ssize_t rec_write(int descriptor, const void *data, size_t bytes)
{
    ssize_t done = real.write(descriptor, data, bytes);
    note_write(descriptor, data, done, place[descriptor]);
    if (done > 0) place[descriptor] += done;
    return done;
}

static ssize_t rec_pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    ssize_t done = real.pwrite(descriptor, data, bytes, offset);
    note_write(descriptor, data, done, offset);
    return done;
}

static int rec_ftruncate(int descriptor, off_t bytes)
{
    if (file_of[descriptor] >= 0) record(CUT, file_of[descriptor])->bytes = bytes;
    return real.ftruncate(descriptor, bytes);
}

static int rec_fsync(int descriptor)
{
    if (file_of[descriptor] >= 0) record(SYNCED, file_of[descriptor]);
    if (file_of[descriptor] == -2) record(FOLDER_SYNCED, -1);
    return real.fsync(descriptor);
}

static int rec_rename(const char *from, const char *to)
{
    event *made = record(RENAMED, -1);
    snprintf(made->name, sizeof made->name, "%s", base_of(from));
    snprintf(made->to, sizeof made->to, "%s", base_of(to));
    return real.rename(from, to);
}

static int rec_unlink(const char *path)
{
    snprintf(record(REMOVED, -1)->name, NAME_MAX, "%s", base_of(path));
    return real.unlink(path);
}

static void begin_recording(void)
{
    real = mrc_sys;
    event_count = file_count = 0;
    for (int i = 0; i < MOST_OPEN; i++) file_of[i] = -1;
    mrc_sys.open = rec_open, mrc_sys.write = rec_write, mrc_sys.pwrite = rec_pwrite;
    mrc_sys.ftruncate = rec_ftruncate, mrc_sys.fsync = rec_fsync, mrc_sys.rename = rec_rename;
    mrc_sys.unlink = rec_unlink;
}

static void end_recording(void)
{
    mrc_sys = real;
}

/* ---- Replay -------------------------------------------------------------------------------------------------- */

typedef struct contents {
    unsigned char data[1 << 16];
    int64_t bytes;
} contents;

static void put(contents *to, const event *at)
{
    if (at->kind == CUT) {
        if (at->bytes > to->bytes) memset(to->data + to->bytes, 0, (size_t)(at->bytes - to->bytes));
        to->bytes = at->bytes;
        return;
    }
    assert_true(at->offset + at->bytes <= (int64_t)sizeof to->data);
    if (at->offset > to->bytes) memset(to->data + to->bytes, 0, (size_t)(at->offset - to->bytes));
    memcpy(to->data + at->offset, at->data, (size_t)at->bytes);
    if (to->bytes < at->offset + at->bytes) to->bytes = at->offset + at->bytes;
}

/* Compute the bytes of a file after events 0 .. end - 1, where writes after its last fsync may be lost. variant 0: all
   of them are lost; 1: none; 2 + 2 i: only the i-th; 3 + 2 i: all but the i-th. Set *variants to the number of
   variants. */
static void replay_file(contents *out, int file, int end, bool sync, int variant, int *variants)
{
    int synced = 0, late = 0;
    out->bytes = 0;
    for (int i = 0; i < end && sync; i++)
        if (events[i].kind == SYNCED && events[i].file == file) synced = i;
    for (int i = 0; i < end; i++) {
        const event *at = &events[i];
        if (at->file != file || (at->kind != WRITTEN && at->kind != CUT)) continue;
        bool kept = i < synced;
        if (!kept) {
            kept = variant == 1 || (variant >= 2 && (variant % 2 == 0) != (late == (variant - 2) / 2));
            late++;
        }
        if (kept) put(out, at);
    }
    *variants = 2 + 2 * late;
}

/* Return the index of the file with that name after events 0 .. end - 1, or -1: the old file. Bit k of `kept`: the
   k-th change since the last fsync of the folder is on disk. Set *late to the number of these changes. */
static int replay_names(const char *wanted, int end, bool sync, unsigned kept, int *late)
{
    int count = 0, synced = 0;
    *late = 0;
    for (int i = 0; i < end && sync; i++)
        if (events[i].kind == FOLDER_SYNCED) synced = i;
    for (int i = 0; i < end; i++) {
        const event *at = &events[i];
        if (at->kind != CREATED && at->kind != RENAMED && at->kind != REMOVED) continue;
        if (i >= synced && !(kept >> (*late)++ & 1)) {
            /* Create the file even if its name is lost: a later rename can be on disk without the creation. */
            if (at->kind != CREATED) continue;
        }
        int found = -1;
        for (int k = 0; k < count; k++)
            if (strcmp(names[k].name, at->name) == 0) found = k;
        if (at->kind == CREATED) {
            snprintf(names[count].name, sizeof names[0].name, "%s", at->name);
            names[count++].file = at->file;
        } else if (found >= 0 && at->kind == REMOVED) {
            names[found] = names[--count];
        } else if (found >= 0) {
            for (int k = 0; k < count; k++)
                if (strcmp(names[k].name, at->to) == 0) names[k].name[0] = 0;
            snprintf(names[found].name, sizeof names[0].name, "%s", at->to);
        }
        assert_true(count < MOST_FILES);
    }
    for (int k = 0; k < count; k++)
        if (strcmp(names[k].name, wanted) == 0) return names[k].file;
    return -1;
}

typedef struct replay {
    const char *name;
    bool sync;      /* true: honor fsync; false: ignore it */
    int64_t states; /* number of states checked */
    int64_t torn;   /* number of states in which the file is neither the old one nor a complete new one */
    int64_t old;    /* number of states in which it is the old one */
    int64_t stale;  /* number of states after the last call in which it is not the newest */
} replay;

/* Return whether the contents equal those of a complete file that was renamed to `name`; set *which to that event. */
static bool was_complete(const char *name, const contents *found, int *which)
{
    static contents whole;
    int variants, late;
    for (int i = 0; i < event_count; i++) {
        if (events[i].kind != RENAMED || strcmp(events[i].to, name) != 0) continue;
        int file = replay_names(name, i + 1, false, ~0u, &late);
        replay_file(&whole, file, i + 1, false, 1, &variants);
        *which = i;
        if (whole.bytes == found->bytes && memcmp(whole.data, found->data, (size_t)found->bytes) == 0) return true;
    }
    return false;
}

static void run_replay(replay *self)
{
    static contents found;
    int last = -1, which = -1, late = 0, variants = 1;
    for (int i = 0; i < event_count; i++)
        if (events[i].kind == RENAMED && strcmp(events[i].to, self->name) == 0) last = i;
    for (int end = 0; end <= event_count; end++) {
        replay_names(self->name, end, self->sync, 0, &late);
        assert_that(late <= MOST_NAMES || (late < 32 && !self->sync), "%d names are not on disk", late);
        int bits = late < MOST_NAMES ? late : MOST_NAMES, shift = late - bits; /* all subsets of the last changes */
        for (unsigned kept = 0; kept < 1u << bits; kept++) {
            unsigned mask = kept << shift | ((1u << shift) - 1);
            int file = replay_names(self->name, end, self->sync, mask, &late);
            for (int v = 0; v < variants || v == 0; v++) {
                self->states++;
                if (file < 0) {
                    self->old++;
                    self->stale += end == event_count;
                    variants = 1;
                    continue;
                }
                replay_file(&found, file, end, self->sync, v, &variants);
                if (!was_complete(self->name, &found, &which))
                    self->torn++;
                else
                    self->stale += end == event_count && which != last;
            }
        }
    }
}

static void forget_events(void)
{
    for (int i = 0; i < event_count; i++) free(events[i].data);
    event_count = 0;
}

static void check_replays(const char *name)
{
    replay honest = {.name = name, .sync = true}, careless = {.name = name, .sync = false};
    run_replay(&honest);
    run_replay(&careless);
    printf("%s: %d calls, %lld states of the disk: %lld old, %lld torn; without fsync %lld of %lld torn\n", name,
           event_count, (long long)honest.states, (long long)honest.old, (long long)honest.torn,
           (long long)careless.torn, (long long)careless.states);
    assert_true(honest.states > 20 && honest.old > 0);
    assert_int_equal(honest.torn, 0);
    assert_int_equal(honest.stale, 0); /* data reported as written must be on disk */
    assert_true(careless.torn > 0);
    forget_events();
}

/* ---- Recorded operations ------------------------------------------------------------------------------------- */

enum { ROWS = 30, WIDTH = 2 };
static float values[ROWS * WIDTH], targets[ROWS];

static mercer_model *make_model(void)
{
    mercer_model *model;
    mercer_kernel kernel;
    for (int i = 0; i < ROWS * WIDTH; i++) values[i] = (float)((i * 37) % 101) / 10;
    for (int i = 0; i < ROWS; i++) targets[i] = values[WIDTH * i];
    mercer_matrix centers = mercer_matrix_view(values, ROWS / 2, WIDTH, MERCER_F32);
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, "gaussian:bandwidth=5"));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &centers, 1, MERCER_F32));
    return model;
}

static void test_model(void **state)
{
    (void)state;
    mercer_model *model = make_model();
    write_bytes(in_folder("model"), "old", 3);
    begin_recording();
    assert_succeeds(context, mercer_model_save(model, in_folder("model"), NULL));
    end_recording();
    check_replays("model");
    mercer_model_free(model);
}

static void test_checkpoints(void **state)
{
    (void)state;
    mercer_model *model = make_model();
    mercer_train_options options = MERCER_INIT(mercer_train_options);
    mercer_trainer *trainer;
    mercer_source source;
    mercer_matrix x = mercer_matrix_view(values, ROWS, WIDTH, MERCER_F32),
                  y = mercer_matrix_view(targets, ROWS, 1, MERCER_F32);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", in_folder("checkpoint"));
    options.solver = "ep4";
    options.epochs = 2;
    options.batch = 10;
    options.checkpoint = path;
    options.checkpoint_seconds = 1e-9; /* write one after every step */
    assert_succeeds(context, source_from_matrices(&source, context, &x, &y, NULL, 3));
    assert_succeeds(context, mercer_trainer_create(&trainer, model, NULL, &options));
    begin_recording();
    assert_succeeds(context, mercer_trainer_fit(trainer, &source, NULL));
    end_recording();
    int renamed = 0;
    for (int i = 0; i < event_count; i++) renamed += events[i].kind == RENAMED;
    assert_true(renamed >= 3);
    check_replays("checkpoint");
    mercer_trainer_free(trainer);
    mercer_source_free(&source);
    mercer_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_checkpoints)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
