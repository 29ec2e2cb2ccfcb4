/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests the collectives over any number of real ranks, started by mpirun. Sums must be bitwise identical to sums over
 * the same shards in one process, and send the number of bytes that the cost model predicts. Projections must be
 * bitwise identical, too. They store the inverses of blocks, which a training run does only on devices.
 *
 * usage: collective MOST_SHARDS [LINK | leave FILE]. LINK: auto, host or nccl; the operands of sums are then presented
 * as GPU memory and sent through the link that is found (fake_link.c). The output names the route taken.
 */
#define _DEFAULT_SOURCE /* nanosleep, access */

#include "comm/comm.h"
#include "solvers/projectors/projector.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static mrc_comm *comm;
static mercer_context *context;
static int failures;

static void check(int good, const char *what, int a, int b)
{
    if (good) return;
    fprintf(stderr, "rank %d of %d: %s (%d, %d): %s\n", comm->rank, comm->ranks, what, a, b,
            mercer_last_error(context));
    failures++;
}

/* Create the parts of shards first .. first + count - 1. Magnitudes differ widely, so that a wrong order of additions
   changes the sum. */
static mercer_matrix *make_parts(int first, int count, int64_t elements, mercer_dtype dtype)
{
    mercer_matrix *parts = calloc((size_t)count + 1, sizeof *parts);
    for (int s = 0; s < count; s++) {
        void *data = malloc((size_t)(elements * mrc_dtype_size(dtype)) + 1);
        parts[s] = mrc_view(data, 1, elements, dtype);
        for (int64_t i = 0; i < elements; i++) {
            double u = mrc_random_uniform((mrc_rng){7, (uint64_t)(first + s)}, (uint64_t)i) - 0.5;
            mrc_store(&parts[s], 0, i, u * (double)(INT64_C(1) << ((first + s + i) % 20)));
        }
    }
    return parts;
}

static void free_parts(mercer_matrix *parts, int count)
{
    for (int s = 0; s < count; s++) free(parts[s].data);
    free(parts);
}

/* ---- Host memory presented as GPU memory ---- */

static mercer_status pretend_alloc(struct mrc_backend *self, void **out, int64_t bytes, const char *what)
{
    (void)self;
    return mrc_alloc(context, out, bytes, 1, what);
}

static void pretend_free(struct mrc_backend *self, void *memory)
{
    (void)self;
    mrc_free(context, memory);
}

static mercer_status pretend_copy(struct mrc_backend *self, const mercer_matrix *to, const mercer_matrix *from)
{
    (void)self;
    memcpy(to->data, from->data, (size_t)(from->cols * mrc_dtype_size(from->dtype)));
    return MERCER_OK;
}

static mercer_status pretend_axpby(struct mrc_backend *self, double a, const mercer_matrix *from, double b,
                                   const mercer_matrix *to)
{
    (void)self;
    check(a == 1 && b == 1, "a GPU adds", a != 1, b != 1);
    check(to->memory == MRC_CUDA && from->memory == MRC_CUDA, "a GPU adds in its own memory", to->memory, from->memory);
    for (int64_t i = 0; i < from->cols; i++) mrc_store(to, 0, i, mrc_load(to, 0, i) + mrc_load(from, 0, i));
    return MERCER_OK;
}

static mercer_status pretend_sync(struct mrc_backend *self)
{
    (void)self;
    return MERCER_OK;
}

static const mrc_worker *pretender; /* worker that presents host memory as GPU memory; NULL: not used */

static void test_sum(int shards, int64_t elements, mercer_dtype dtype)
{
    int64_t first, local;
    mrc_comm *alone;
    mrc_share(shards, comm->ranks, comm->rank, &first, &local);
    mercer_matrix *parts = make_parts((int)first, (int)local, elements, dtype),
                  *all = make_parts(0, shards, elements, dtype);
    mrc_shards mine = {shards, (int)first, (int)local}, whole = {shards, 0, shards};
    int64_t before = comm->bytes_sent;
    for (int64_t i = 0; i < local && pretender; i++) parts[i].memory = MRC_CUDA;
    check(mrc_comm_sum(comm, mine, parts, pretender) == MERCER_OK, "sum", shards, (int)elements);
    check(mrc_comm_create_virtual(&alone, context, shards) == MERCER_OK, "virtual", shards, 0);
    check(mrc_comm_sum(alone, whole, all, NULL) == MERCER_OK, "sum of one rank", shards, (int)elements);
    size_t bytes = (size_t)(elements * mrc_dtype_size(dtype));
    check(memcmp(parts[0].data, all[0].data, bytes) == 0, "other bits than one process", shards, (int)elements);
    /* If the shards of each rank form a subtree, each rank sends one node: 2 (ranks - 1) / ranks buffers, as
       documented. */
    if (comm->ranks > 1 && shards % comm->ranks == 0 && (local & (local - 1)) == 0 && elements >= 5000) {
        double sent = (double)(comm->bytes_sent - before), share = (comm->ranks - 1.0) / comm->ranks;
        double wanted = 2 * (double)bytes * share;
        check(sent > 0.99 * wanted && sent < 1.01 * wanted, "bytes of a sum", (int)sent, (int)wanted);
    }
    mercer_comm_free(alone);
    free_parts(parts, (int)local);
    free_parts(all, shards);
}

static void test_others(void)
{
    char text[64] = "mine";
    bool any;
    int64_t *numbers = calloc((size_t)comm->ranks, sizeof *numbers);
    if (comm->rank == 0) snprintf(text, sizeof text, "rank 0's");
    check(mrc_comm_broadcast(comm, text, sizeof text) == MERCER_OK, "broadcast", 0, 0);
    check(strcmp(text, "rank 0's") == 0, "broadcast bytes", 0, 0);
    for (int who = 0; who < comm->ranks; who++) {
        double value = comm->rank == who ? 100.5 + who : -1e300;
        int number = 7 * comm->rank;
        check(mrc_comm_largest(comm, &value) == MERCER_OK && value == 100.5 + who, "largest", who, (int)value);
        check(mrc_comm_spread(comm, MRC_HOST, who, &number, sizeof number) == MERCER_OK && number == 7 * who, "spread",
              who, number);
    }
    for (int who = 0; who <= comm->ranks; who++) {
        check(mrc_comm_any(comm, comm->rank == who, &any) == MERCER_OK, "any", who, 0);
        check(any == (who < comm->ranks), "any's answer", who, any);
    }
    numbers[comm->rank] = 100 + comm->rank;
    mrc_piece *pieces = calloc((size_t)comm->ranks, sizeof *pieces);
    for (int r = 0; r < comm->ranks; r++) pieces[r] = (mrc_piece){&numbers[r], sizeof *numbers};
    check(mrc_comm_gather(comm, MRC_HOST, pieces) == MERCER_OK, "gather", 0, 0);
    for (int r = 0; r < comm->ranks; r++) check(numbers[r] == 100 + r, "gathered", r, (int)numbers[r]);
    check(mrc_comm_agree(comm, "other words", "same", 4) == MERCER_OK, "agree", 0, 0);
    if (comm->ranks > 1) {
        mercer_status status = mrc_comm_agree(comm, "other words", comm->rank == 1 ? "diff" : "same", 4);
        check(status == MERCER_ERROR_COMM, "disagree", status, 0);
        check(strstr(mercer_last_error(context), "rank 1 ") != NULL, "disagreement names the rank", 0, 0);
        mercer_status own = comm->rank == 1 ? mrc_fail(context, MERCER_ERROR_IO, "disk full") : MERCER_OK;
        status = mrc_comm_together(comm, own, "writing");
        check(status == (comm->rank == 1 ? MERCER_ERROR_IO : MERCER_ERROR_COMM), "together", status, 0);
        check(strstr(mercer_last_error(context), "disk full") != NULL, "together's reason", 0, 0);
        check(!comm->broken, "still whole", 0, 0);
    }
    free(pieces);
    free(numbers);
}

enum { P = 61, D = 3, C = 2 };

/* Return this rank's rows of theta of one projection; the caller frees its data. Set *held to the bytes of the centers
   and projector. */
static mercer_matrix project(mrc_comm *with, const char *kind, int64_t *held)
{
    static double z[P * D], h[P * C];
    double origin[D] = {0};
    mercer_kernel kernel;
    mrc_centers centers;
    mrc_projector *projector = NULL;
    mrc_projection report;
    int64_t first, rows;
    for (int64_t i = 0; i < P * D; i++) z[i] = mrc_random_normal((mrc_rng){3, 1}, (uint64_t)i);
    for (int64_t i = 0; i < P * C; i++) h[i] = mrc_random_normal((mrc_rng){3, 2}, (uint64_t)i);
    mrc_comm_rows(with, P, with->rank, &first, &rows);
    mercer_matrix own = mrc_view(z + first * D, rows, D, MERCER_F64), theta = mrc_view(NULL, rows, C, MERCER_F64),
                  right = mrc_view(h + first * C, rows, C, MERCER_F64);
    theta.data = calloc((size_t)(rows * C) + 1, sizeof(double));
    mrc_projector_options options = {
        .nystrom = 20, .eigenpairs = 5, .passes = 2, .block = 7, .gamma = 0.9, .store = true, .sampled = true};
    int64_t before = context->bytes_now;
    mercer_status status = mercer_kernel_parse(&kernel, context, "laplace:bandwidth=2");
    if (status == MERCER_OK)
        status = mrc_centers_create(&centers, context->backend, with, &kernel, &own, P, origin, MERCER_F64);
    check(status == MERCER_OK, "centers", with->ranks, 0);
    status = mrc_projector_create(&projector, mrc_projector_find(kind), &centers, &options);
    *held = context->bytes_now - before;
    if (status == MERCER_OK) status = mrc_project(projector, &right, &theta, &report);
    check(status == MERCER_OK, kind, with->ranks, 0);
    check(report.residual < 0.9, "a residual", (int)(100 * report.residual), 0);
    mrc_projector_free(projector);
    mrc_centers_destroy(&centers);
    return theta;
}

/* Check that a projection equals that of one process bit by bit, and that it needs less memory per rank. */
static void test_projection(const char *kind)
{
    mrc_comm *alone;
    int64_t first, rows, held, held_alone;
    check(mrc_comm_create_virtual(&alone, context, 8) == MERCER_OK, "virtual", 8, 0);
    comm->shards = 8;
    free(project(alone, kind, &held).data); /* warm-up: allocates workspaces that the context keeps */
    mercer_matrix all = project(alone, kind, &held_alone), theta = project(comm, kind, &held);
    mrc_comm_rows(comm, P, comm->rank, &first, &rows);
    check(rows == theta.rows && memcmp(theta.data, mrc_row(&all, first), (size_t)(rows * C) * sizeof(double)) == 0,
          kind, (int)first, (int)rows);
    /* Each rank also stores replicated data: one block and small matrices; ep2: eigenvectors of the sample; exact:
       everything. */
    double least = strcmp(kind, "ep2") == 0 ? 0.8 : 0.66;
    if (comm->ranks > 1 && strcmp(kind, "exact") != 0)
        check((double)held < least * (double)held_alone, "memory of a projector", (int)held, (int)held_alone);
    comm->shards = 0;
    mercer_comm_free(alone);
    free(theta.data);
    free(all.data);
}

/* ---- Leaving ----------------------------------------------------------------------------------------------------- */

static void speak_slowly(void *user, int code, const char *text)
{
    struct timespec moment = {0, 600000000};
    (void)code, (void)text;
    if (comm->rank > 0) return;
    nanosleep(&moment, NULL);
    FILE *file = fopen(user, "w");
    if (file) fclose(file);
}

/* Rank 1 leaves, and the other ranks must detect this. A rank that sees rank 0 leave must find the file `path`: rank 0
   writes it before it leaves. */
static int test_leaving(char *path)
{
    int mine = 0, any;
    comm->leaving = speak_slowly;
    comm->leaving_user = path;
    if (comm->rank == 1)
        mrc_comm_leave(comm, 5, "rank 1 has had enough");
    else
        check(mercer_comm_any(comm, &any, mine) == MERCER_ERROR_COMM, "a rank that left", comm->rank, 0);
    if (mrc_comm_leave(comm, 5, "again")) check(access(path, F_OK) == 0, "rank 0 left before it spoke", comm->rank, 0);
    return failures != 0 ? 3 : 0;
}

int main(int count, char **arguments)
{
    const mercer_dtype types[] = {MERCER_F32, MERCER_F64};
    const int64_t sizes[] = {0, 1, 7, 5000, 100003};
    int most = count > 1 ? atoi(arguments[1]) : 17;
    if (mercer_context_create(&context, NULL) != MERCER_OK) return 1;
    if (mrc_comm_create_module(&comm, context, "mpi", 0, count > 2 ? 4 : 20) != MERCER_OK) {
        fprintf(stderr, "%s\n", mercer_last_error(context));
        return 1;
    }
    mrc_worker gpu = {NULL, MRC_CUDA, pretend_alloc, pretend_free, pretend_copy, pretend_axpby, pretend_sync};
    if (count > 3) _Exit(test_leaving(arguments[3]));
    if (count > 2) {
        pretender = &gpu;
        comm->wish = strcmp(arguments[2], "nccl") == 0   ? MRC_LINK_ALWAYS
                     : strcmp(arguments[2], "host") == 0 ? MRC_LINK_NEVER
                                                         : MRC_LINK_AUTO;
        if (mrc_comm_link(comm, 0) != MERCER_OK) {
            fprintf(stderr, "rank %d: %s\n", comm->rank, mercer_last_error(context));
            return 3;
        }
        if (comm->rank == 0) printf("%s\n", comm->link ? "direct" : "host");
        fflush(stdout);
    }
    for (int shards = comm->ranks; shards <= most && !comm->broken; shards++)
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < 5 && !comm->broken; i++) test_sum(shards, sizes[i], types[t]);
    if (!comm->broken) test_sum(64, 30000, MERCER_F32);
    if (!comm->broken) test_others();
    static const char *const kinds[] = {"bgs", "pcg", "ep2", "exact"};
    for (int i = 0; i < 4 && comm->ranks <= 8 && !pretender && !comm->broken; i++) test_projection(kinds[i]);
    int failed = failures != 0;
    if (comm->broken) _Exit(1); /* MPI_Finalize would wait for ranks that have left */
    mercer_comm_free(comm);
    mercer_context_free(context);
    return failed;
}
