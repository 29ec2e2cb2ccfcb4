/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks as threads: exchanges, sums bitwise identical to virtual shards, ranks that leave or never arrive. Also runs
   under the thread sanitizer. */
#include "support/check.h"

#include "comm/comm.h"
#include "core/clock.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "plan/plan.h"
#include "support/allocator.h"
#include "support/local_ranks.h"

#include <time.h>

/* ---- Exchanges ---------------------------------------------------------------------------------------------- */

/* Return the number of bytes that rank a sends to rank b. value_of returns the values of these bytes. */
static int64_t size_of(int a, int b, int64_t scale)
{
    return (int64_t)((a * 7 + b * 3) % 5) * scale;
}

static unsigned char value_of(int a, int b, int64_t i, int round)
{
    return (unsigned char)(a * 31 + b * 17 + i + round);
}

static int exchange_all_sizes(mrc_comm *comm, mercer_context *context, void *user)
{
    (void)context;
    const int64_t scale = *(const int64_t *)user;
    unsigned char *out[MOST], *in[MOST];
    mrc_piece send[MOST] = {{0}}, receive[MOST] = {{0}};
    int wrong = 0;
    for (int r = 0; r < comm->ranks; r++) {
        send[r] = (mrc_piece){.bytes = size_of(comm->rank, r, scale)};
        receive[r] = (mrc_piece){.bytes = size_of(r, comm->rank, scale)};
        send[r].data = out[r] = malloc((size_t)send[r].bytes + 1);
        receive[r].data = in[r] = malloc((size_t)receive[r].bytes + 1);
    }
    for (int round = 0; round < (SANITIZED ? 3 : 20); round++) {
        for (int r = 0; r < comm->ranks; r++)
            for (int64_t i = 0; i < send[r].bytes; i++) out[r][i] = value_of(comm->rank, r, i, round);
        if (mrc_comm_exchange(comm, send, receive) != MERCER_OK) wrong += 1000;
        for (int r = 0; r < comm->ranks; r++)
            for (int64_t i = 0; i < receive[r].bytes && r != comm->rank; i++)
                wrong += in[r][i] != value_of(r, comm->rank, i, round);
    }
    for (int r = 0; r < comm->ranks; r++) free(out[r]), free(in[r]);
    return wrong;
}

static void test_pieces_of_all_sizes(void **state)
{
    (void)state;
    for (int64_t scale = 0; scale <= 100000; scale = scale * 40 + 1)
        for (int ranks = 2; ranks <= MOST; ranks += SANITIZED ? 6 : 3) with_ranks(ranks, 0, exchange_all_sizes, &scale);
}

static int send_what_nobody_expects(mrc_comm *comm, mercer_context *context, void *user)
{
    (void)user;
    char data[16] = "", buffer[8];
    mrc_piece send[MOST] = {{0}}, receive[MOST] = {{0}};
    for (int r = 0; r < comm->ranks; r++) {
        send[r] = (mrc_piece){data, comm->rank == 1 ? 16 : 8};
        receive[r] = (mrc_piece){buffer, 8};
    }
    mercer_status status = mrc_comm_exchange(comm, send, receive);
    if (comm->rank == 1) return status != MERCER_OK; /* rank 1 received the size that it expected */
    return status != MERCER_ERROR_COMM || !mentions(mercer_last_error(context), "rank 1 sends 16 bytes");
}

static void test_sizes_that_do_not_agree(void **state)
{
    (void)state;
    with_ranks(3, 0, send_what_nobody_expects, NULL);
}

/* ---- Sums --------------------------------------------------------------------------------------------------- */

typedef struct sum_case {
    int shards;
    int64_t elements;
    mercer_dtype dtype;
    char *wanted; /* expected sum, as computed with virtual shards */
} sum_case;

/* Create `count` parts from shard `first` on, with values of very different sizes so that the order of additions
   matters. */
static mercer_matrix *make_parts(int first, int count, const sum_case *job)
{
    mercer_matrix *parts = calloc((size_t)count + 1, sizeof *parts);
    for (int s = 0; s < count; s++) {
        parts[s] =
            mrc_view(malloc((size_t)(job->elements * mrc_dtype_size(job->dtype)) + 1), 1, job->elements, job->dtype);
        for (int64_t i = 0; i < job->elements; i++) {
            double u = mrc_random_uniform((mrc_rng){7, (uint64_t)(first + s)}, (uint64_t)i) - 0.5;
            mrc_store(&parts[s], 0, i, u * (double)(INT64_C(1) << ((first + s + i) % 20)));
        }
    }
    return parts;
}

static int sum_shards(mrc_comm *comm, mercer_context *context, void *user)
{
    (void)context;
    const sum_case *job = user;
    int64_t first, local;
    mrc_share(job->shards, comm->ranks, comm->rank, &first, &local);
    mercer_matrix *parts = make_parts((int)first, (int)local, job);
    int wrong = mrc_comm_sum(comm, (mrc_shards){job->shards, (int)first, (int)local}, parts, NULL) != MERCER_OK;
    wrong += memcmp(parts[0].data, job->wanted, (size_t)(job->elements * mrc_dtype_size(job->dtype))) != 0;
    for (int64_t s = 0; s < local; s++) free(parts[s].data);
    free(parts);
    return wrong;
}

static void check_sum(int ranks, sum_case job)
{
    mercer_context context = {.threads = 1};
    mrc_comm *alone;
    assert_succeeds(&context, mrc_comm_create_virtual(&alone, &context, job.shards));
    mercer_matrix *parts = make_parts(0, job.shards, &job);
    assert_succeeds(&context, mrc_comm_sum(alone, (mrc_shards){job.shards, 0, job.shards}, parts, NULL));
    job.wanted = parts[0].data;
    with_ranks(ranks, job.shards, sum_shards, &job);
    for (int s = 0; s < job.shards; s++) free(parts[s].data);
    free(parts);
    mercer_comm_free(alone);
}

static void test_sums_have_the_bits_of_virtual_shards(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 7, 5000, 30011};
    for (int ranks = 1; ranks <= MOST; ranks++)
        for (int i = 0; i < 5; i++)
            check_sum(ranks, (sum_case){.shards = ranks > 4 ? 8 + ranks : 8,
                                        .elements = sizes[i],
                                        .dtype = i % 2 ? MERCER_F64 : MERCER_F32});
}

static int ask_around(mrc_comm *comm, mercer_context *context, void *user)
{
    (void)user;
    char text[32] = "mine";
    bool any = false;
    int wrong = 0;
    if (comm->rank == 0) snprintf(text, sizeof text, "rank 0's");
    wrong += mrc_comm_broadcast(comm, text, sizeof text) != MERCER_OK || strcmp(text, "rank 0's") != 0;
    for (int who = 0; who <= comm->ranks; who++)
        wrong += mrc_comm_any(comm, comm->rank == who, &any) != MERCER_OK || any != (who < comm->ranks);
    wrong += mrc_comm_agree(comm, "other words", "same", 4) != MERCER_OK;
    wrong += mrc_comm_agree(comm, "other words", comm->rank == 1 ? "diff" : "same", 4) != MERCER_ERROR_COMM;
    wrong += !mentions(mercer_last_error(context), "rank 1 *other words");
    mercer_status own = comm->rank == 1 ? mrc_fail(context, MERCER_ERROR_IO, "disk full") : MERCER_OK;
    mercer_status status = mrc_comm_together(comm, own, "writing");
    wrong += status != (comm->rank == 1 ? MERCER_ERROR_IO : MERCER_ERROR_COMM);
    return wrong + (!mentions(mercer_last_error(context), "disk full")) + comm->broken;
}

static void test_other_collectives(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= MOST; ranks += 2) with_ranks(ranks, 0, ask_around, NULL);
}

/* ---- Memory of devices -------------------------------------------------------------------------------------- */

typedef struct fake_device {
    uint64_t place;
    int64_t bytes;
} fake_device;

static mrc_capabilities fake_capabilities(const mrc_backend *backend, bool half)
{
    (void)half;
    return (mrc_capabilities){.place = ((const fake_device *)backend->state)->place};
}

static int64_t fake_free_memory(mrc_backend *backend)
{
    return ((const fake_device *)backend->state)->bytes;
}

/* Ranks 0 and 2 share a device of 80 GiB; rank 1 has its own, with 30 GiB (way 0) or 50 GiB (other ways). The smallest
   share of any rank counts; way 2 computes in host memory. */
static int ask_for_memory(mrc_comm *comm, mercer_context *context, void *user)
{
    static const mrc_backend_ops ops = {.capabilities = fake_capabilities, .free_memory = fake_free_memory};
    const int way = *(const int *)user;
    const int64_t alone = way == 0 ? 30 : 50;
    fake_device device = {.place = comm->rank == 1 ? 5 : 9, .bytes = (int64_t)(comm->rank == 1 ? alone : 80) << 30};
    mrc_backend backend = {.ops = &ops, .context = context, .state = &device};
    const int64_t shares[] = {mrc_plan_share(true, (int64_t)80 << 30) / 2, mrc_plan_share(true, alone << 30)};
    int64_t each, wanted = way == 2 ? 0 : shares[way == 0];
    if (way == 2) device.place = 0; /* place 0: all ranks compute in host memory */
    return mrc_rank_memory(&backend, comm, &each) != MERCER_OK || each != wanted;
}

static void test_devices_are_counted_once(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) with_ranks(3, 0, ask_for_memory, &way);
}

/* ---- Ranks that fail ---------------------------------------------------------------------------------------- */

/* Rank 1 leaves after five exchanges; the others get an error in the next one, and the communicator stays broken. */
static int leave_early(mrc_comm *comm, mercer_context *context, void *user)
{
    (void)user;
    bool any;
    for (int i = 0; i < 5; i++)
        if (mrc_comm_any(comm, false, &any) != MERCER_OK) return 1;
    if (comm->rank == 1) {
        mercer_comm_leave(comm, 74, "disk full");
        return 0;
    }
    if (mrc_comm_any(comm, false, &any) != MERCER_ERROR_COMM) return 2;
    if (!mentions(mercer_last_error(context), "rank 1 ended: disk full")) return 3;
    if (comm->left_code != 74 || !comm->broken) return 4;
    if (mrc_comm_any(comm, false, &any) != MERCER_ERROR_COMM) return 5;
    mercer_comm_leave(comm, 74, "the same");
    return 0;
}

static void test_a_rank_that_leaves(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= MOST; ranks += 3) with_ranks(ranks, 0, leave_early, NULL);
}

static int close_early(mrc_comm *comm, mercer_context *context, void *user)
{
    bool any;
    if (comm->rank == 1) {
        mercer_comm_free(comm);
        *(mrc_comm **)user = NULL;
        return 0;
    }
    if (mrc_comm_any(comm, false, &any) != MERCER_ERROR_COMM) return 1;
    return !mentions(mercer_last_error(context), "rank 1 ended: *closed");
}

static void test_rank_that_closes_early(void **state)
{
    (void)state;
    rank_thread all[MOST];
    make_ranks(all, 3, 0, 20);
    run_ranks(all, 3, close_early, &all[1].comm);
    assert_null(all[1].comm);
    free_ranks(all, 3, 0);
}

/* Rank 2 arrives only after the other ranks have passed the deadline and failed. */
static int come_late(mrc_comm *comm, mercer_context *context, void *user)
{
    bool any;
    pthread_barrier_t *given_up = user;
    double start = mrc_seconds();
    if (comm->rank == 2) pthread_barrier_wait(given_up);
    mercer_status status = mrc_comm_any(comm, false, &any);
    double took = mrc_seconds() - start;
    if (comm->rank != 2) pthread_barrier_wait(given_up);
    if (status != MERCER_ERROR_COMM) return 1;
    /* The late rank gets the message of the first rank that left. If no rank has left yet, the message reports that the
       other ranks no longer wait for it. */
    if (comm->rank == 2 && mentions(mercer_last_error(context), "this one")) return 0;
    if (!mentions(mercer_last_error(context), "rank 2 ")) return 2;
    if (comm->rank == 2) return 0;
    return took < 0.09 || took > 10 ? 3 : 0;
}

static void test_absent_rank(void **state)
{
    (void)state;
    rank_thread all[MOST];
    pthread_barrier_t given_up;
    assert_int_equal(pthread_barrier_init(&given_up, NULL, 4), 0);
    make_ranks(all, 4, 0, 0.1);
    run_ranks(all, 4, come_late, &given_up);
    free_ranks(all, 4, 3);
    pthread_barrier_destroy(&given_up);
}

static int come_one_by_one(mrc_comm *comm, mercer_context *context, void *user)
{
    (void)context, (void)user;
    bool any;
    struct timespec turn = {0, 60000000L * comm->rank};
    nanosleep(&turn, NULL);
    return mrc_comm_any(comm, true, &any) != MERCER_OK;
}

/* The deadline counts from the last arrival of a rank, not from the start of the exchange. */
static void test_news_renew_the_deadline(void **state)
{
    (void)state;
    rank_thread all[MOST];
    make_ranks(all, 6, 0, 0.25);
    run_ranks(all, 6, come_one_by_one, NULL);
    free_ranks(all, 6, 1);
}

/* ---- Creation ----------------------------------------------------------------------------------------------- */

static void test_arguments(void **state)
{
    (void)state;
    mercer_context *contexts[3];
    mercer_comm *out[3] = {(void *)1, (void *)1, (void *)1};
    for (int r = 0; r < 3; r++) assert_succeeds(NULL, mercer_context_create(&contexts[r], NULL));
    mercer_context *twice[] = {contexts[0], contexts[1], contexts[0]}, *holed[] = {contexts[0], NULL, contexts[1]};
    mercer_context *first = contexts[0];
    assert_fails(NULL, mercer_comm_create_local(NULL, contexts, 3, NULL), MERCER_ERROR_ARGUMENT, "contexts");
    assert_fails(NULL, mercer_comm_create_local(out, NULL, 3, NULL), MERCER_ERROR_ARGUMENT, "contexts");
    assert_fails(first, mercer_comm_create_local(out, contexts, 0, NULL), MERCER_ERROR_ARGUMENT, "ranks is 0");
    assert_fails(first, mercer_comm_create_local(out, contexts, 5000, NULL), MERCER_ERROR_ARGUMENT, "ranks is 5000");
    assert_fails(first, mercer_comm_create_local(out, twice, 3, NULL), MERCER_ERROR_ARGUMENT, "ranks 0 and 2");
    assert_fails(first, mercer_comm_create_local(out, holed, 3, NULL), MERCER_ERROR_ARGUMENT, "rank 1 is NULL");
    mercer_comm_options options = {.struct_size = sizeof options, .shards = 2};
    assert_fails(first, mercer_comm_create_local(out, contexts, 3, &options), MERCER_ERROR_ARGUMENT,
                 "3 ranks*2 shards");
    options = (mercer_comm_options){.struct_size = sizeof options, .kind = "mpi"};
    assert_fails(first, mercer_comm_create_local(out, contexts, 3, &options), MERCER_ERROR_ARGUMENT, "kind is 'mpi'");
    options = (mercer_comm_options){.struct_size = sizeof options, .deadline = -1};
    assert_fails(first, mercer_comm_create_local(out, contexts, 3, &options), MERCER_ERROR_ARGUMENT, "deadline");
    for (int r = 0; r < 3; r++) assert_null(out[r]);
    assert_succeeds(first, mercer_comm_create_local(out, contexts, 3, NULL));
    mercer_comm_info info = {.struct_size = sizeof info};
    assert_succeeds(first, mercer_comm_query(out[2], &info));
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.ranks, 3);
    for (int r = 0; r < 3; r++) mercer_comm_free(out[r]);
    for (int r = 0; r < 3; r++) mercer_context_free(contexts[r]);
}

/* If any allocation fails, no communicator is created and all memory is freed. */
static void test_all_or_none(void **state)
{
    (void)state;
    for (int64_t allowed = 0;; allowed++) {
        test_allocator allocator = {0};
        mercer_context_options options = MERCER_INIT(mercer_context_options);
        mercer_context *contexts[2];
        mercer_comm *out[2];
        assert_succeeds(NULL, mercer_context_create(&contexts[0], NULL));
        options.allocator = test_allocator_table(&allocator);
        assert_succeeds(NULL, mercer_context_create(&contexts[1], &options));
        int64_t before = contexts[0]->bytes_now;
        allocator.fail_at = allocator.requests + 1 + allowed;
        mercer_status status = mercer_comm_create_local(out, contexts, 2, NULL);
        if (status != MERCER_OK) {
            assert_fails(contexts[0], status, MERCER_ERROR_MEMORY, "rank 1: *memory");
            assert_null(out[0]);
            assert_null(out[1]);
        }
        for (int r = 0; r < 2; r++) mercer_comm_free(out[r]);
        assert_int_equal(contexts[0]->bytes_now, before);
        for (int r = 0; r < 2; r++) mercer_context_free(contexts[r]);
        assert_int_equal(allocator.live, 0);
        if (status == MERCER_OK) return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_all_sizes),
        cmocka_unit_test(test_sizes_that_do_not_agree),
        cmocka_unit_test(test_sums_have_the_bits_of_virtual_shards),
        cmocka_unit_test(test_other_collectives),
        cmocka_unit_test(test_devices_are_counted_once),
        cmocka_unit_test(test_a_rank_that_leaves),
        cmocka_unit_test(test_rank_that_closes_early),
        cmocka_unit_test(test_absent_rank),
        cmocka_unit_test(test_news_renew_the_deadline),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_all_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
