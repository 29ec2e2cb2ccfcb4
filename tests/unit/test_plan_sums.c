/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Totals of plans: exact bytes, flops and seconds for a solver with made-up costs; the cost on ranks, derived from the
 * costs of a solver.
 */
#include "support/plans.h"
#include "support/training.h"

#include "plan/plan.h"
#include "solvers/operators/kernel_blocks.h"

#include <string.h>

/* ---- One process -------------------------------------------------------------------------------------------- */

static void check_near(double value, double wanted, double tolerance)
{
    assert_that(fabs(value - wanted) <= tolerance, "%.17g instead of %.17g", value, wanted);
}

/* A solver with costs set by the test, and the planner state that it was given. */
static mrc_solver_cost made_cost;
static mrc_caching made_caching;
static mrc_planner seen;

static mercer_status made_choose(mrc_planner *planner)
{
    int64_t critical = planner->request->critical_batch;
    seen = *planner;
    planner->caching = made_caching;
    planner->public_plan->batch = critical > 0 ? critical : 100;
    planner->public_plan->epochs = 2;
    return MERCER_OK;
}

static void made_settle(mrc_planner *planner)
{
    (void)planner;
}

static void made_costs(const mrc_problem *problem, const mrc_plan *plan, mrc_solver_cost *out)
{
    (void)problem, (void)plan;
    *out = made_cost;
}

static const mrc_solver_ops made_ops = {.choose = made_choose, .complete_plan = made_settle, .cost = made_costs};
static const mrc_solver made = {.name = "made", .description = "of a test", .ops = &made_ops};

enum { ROWS = 90, CENTERS = 50, FEATURES = 7, OUTPUTS = 3 };

static mrc_plan_request made_request(const mercer_train_options *options)
{
    made_cost = (mrc_solver_cost){
        .set_up = {.held = {1000, 2000}, .peak = {300, 40}, .set_up = {20000, 5}, .flops = 1e9, .doubles = 2e9},
        .batch = {.flops = 3e9, .serial = 1e7, .read = 5e8},
        .projection = {.doubles = 7e9, .waiting = 1e6},
        .batches = 3,
        .epochs = 2,
        .all_projections = 5};
    made_caching = (mrc_caching){.block = 3000, .block_with_cache = 1234};
    return (mrc_plan_request){.machine = mrc_machine_of(context),
                              .options = options,
                              .n = ROWS,
                              .p = CENTERS,
                              .d = FEATURES,
                              .c = OUTPUTS,
                              .real = MERCER_F32,
                              .points = MERCER_F32,
                              .shards = 1,
                              .threads = 4,
                              .bounded = true,
                              .rows_known = true};
}

static mercer_status plan_made(mrc_plan *plan, const mrc_plan_request *request)
{
    memset(plan, 0, sizeof *plan);
    return replace_plan(context, plan, request, &made, "a test");
}

/* Returns the bytes of the threads' scratch memory and of a batch of m rows with its targets; real, point: bytes per
   value. */
static int64_t workspace(int64_t threads, int64_t m, int64_t real, int64_t point, int64_t shards)
{
    int64_t tile = (6 << 20) + 512 * (FEATURES * mrc_max(real, 4) + 32 * OUTPUTS) + 300 * FEATURES * mrc_max(real, 4);
    return threads * tile + 8 * m * OUTPUTS + m * (FEATURES * point + 3 * OUTPUTS * real) +
           (shards > 1 ? shards * m * OUTPUTS * real : 0);
}

/* Persistent memory, temporary memory, and a budget that is one byte too small. */
static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        mercer_dtype real, points;
        int shards;
    } kinds[] = {{MERCER_F32, MERCER_F32, 1}, {MERCER_F64, MERCER_U8, 1}, {MERCER_F32, MERCER_F16, 3}};
    mrc_plan plan;
    for (int i = 0; i < 6; i++) {
        mercer_train_options options = options_for(NULL);
        mrc_plan_request request = made_request(&options);
        request.real = kinds[i / 2].real, request.points = kinds[i / 2].points, request.shards = kinds[i / 2].shards;
        made_caching.block = 0;
        if (i % 2) made_cost.set_up.set_up.shared = 100; /* less than the steps use */
        int64_t held =
            3000 + workspace(4, 100, mrc_dtype_size(request.real), mrc_dtype_size(request.points), request.shards);
        int64_t needed = held + (i % 2 ? 340 : 20005);
        options.memory = needed;
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.public_plan.bytes, needed);
        assert_int_equal(plan.budget, needed);
        assert_true(plan.batch_block_bytes == 0 && plan.public_plan.cache_data == 0);
        options.memory--;
        char needs[MRC_BYTES_TEXT], message[128];
        snprintf(message, sizeof message, "made *p = 50 *%s; use ep4*memory", mrc_bytes_text(needs, needed));
        assert_fails(context, plan_made(&plan, &request), MERCER_ERROR_MEMORY, message);
        request.budget = needed; /* the cache is already decided, so the option has no effect */
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.budget, needed);
    }
}

/* K(X,Z) is cached from exactly the budget at which it fits: whole, in half precision, or one batch's block of it. */
static void test_cached_matrix(void **state)
{
    (void)state;
    const int64_t whole = ROWS * (4 * CENTERS + 1), half = ROWS * (2 * CENTERS + 1), running = 3340; /* and workspace */
    mrc_plan plan;
    mercer_train_options options = options_for(NULL);
    mrc_plan_request request = made_request(&options);
    made_cost.set_up.set_up = (mrc_bytes){0, 0};
    int64_t base = running + workspace(4, 100, 4, 4, 1);
    for (int less = 0; less < 2; less++) {
        made_caching.repeated = true, made_caching.half = false;
        options.memory = base + 1234 + whole / 9 * 10 - less; /* a tenth of the rest stays free */
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.public_plan.cache_data, !less);
        assert_int_equal(plan.batch_block_bytes, less ? 3000 : 1234);
        assert_int_equal(plan.public_plan.bytes, base + (less ? 3000 : 1234 + whole));
        made_caching.half = true;
        options.memory = base + 1234 + half / 9 * 10 - less;
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.public_plan.cache_data, less ? 0 : MRC_CACHE_HALF);
        assert_int_equal(plan.public_plan.bytes, base + (less ? 3000 : 1234 + half));
        options.memory = base + 4 * whole; /* enough for a full cache: half precision only if preferred anyway */
        made_caching.half_from = whole - less;
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.public_plan.cache_data, less ? MRC_CACHE_HALF : 1);
        made_caching.block_with_cache =
            2 * whole - less; /* other cached data next to a cache take at most half of the rest */
        options.memory = base + 4 * whole - 1 - less;
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.public_plan.cache_data, less ? MRC_CACHE_HALF : 0);
        made_caching.block_with_cache = 1234, made_caching.half_from = whole;
    }
    options.memory = base + 5000; /* a block takes at most half of the rest */
    made_caching.repeated = false;
    assert_succeeds(context, plan_made(&plan, &request));
    assert_int_equal(plan.batch_block_bytes, 2500);
    options.memory = base + 4 * whole;
    assert_succeeds(context, plan_made(&plan, &request));
    assert_int_equal(plan.public_plan.cache_data, 0);
    for (int why = 0; why < 3; why++) {
        made_caching.repeated = true, made_caching.half = false;
        options.cache = why == 1 ? MERCER_OFF : MERCER_AUTO;
        request.rows_known = why != 2;
        assert_succeeds(context, plan_made(&plan, &request));
        assert_int_equal(plan.public_plan.cache_data, why == 0);
    }
}

/* Flops, and seconds at the rates of the instruction set. */
static void test_time(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for(NULL);
    mrc_plan_request request = made_request(&options);
    options.memory = (int64_t)1 << 30;
    request.machine.isa = MRC_ISA_AVX2;
    for (int i = 0; i < 4; i++) {
        double threads = request.threads = i == 1 ? 2 : i == 2 ? 8 : 4;
        request.real = i == 3 ? MERCER_F64 : MERCER_F32;
        assert_succeeds(context, plan_made(&plan, &request));
        double flops = 1e9 + 6 * 3e9, doubles = 2e9 + 5 * 7e9, serial = 6 * 1e7, waiting = 5 * 1e6;
        double rate = 35e9 * threads, seconds = flops / (i == 3 ? rate / 2 : rate) + doubles / (rate / 2) +
                                                serial / (35e9 / 2) + 6 * 5e8 / (6e9 * fmin(threads, 4));
        check_near(plan.public_plan.flops, flops + doubles + serial + waiting, 1);
        check_near(plan.public_plan.seconds, seconds, 1e-12 * seconds);
        assert_true(!seen.device && seen.cached_size == (i == 3 ? 8 : 4) && seen.problem.effort == 1);
    }
    made_caching.repeated = true, request.real = MERCER_F32; /* a cache is filled once */
    double before = plan.public_plan.flops;
    assert_succeeds(context, plan_made(&plan, &request));
    check_near(plan.public_plan.flops, before + 2.0 * ROWS * CENTERS * FEATURES, 1);
    static const struct {
        double norm;
        mercer_dtype points;
        double effort;
    } efforts[] = {{2, MERCER_F32, 1},  {0, MERCER_F32, 1},    {1, MERCER_F32, 3},
                   {1, MERCER_U8, 0.6}, {0.5, MERCER_U8, 180}, {1.5, MERCER_F32, 180}};
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
        request.norm = efforts[i].norm, request.points = efforts[i].points;
        assert_succeeds(context, plan_made(&plan, &request));
        check_near(seen.problem.effort, efforts[i].effort, 1e-12);
    }
}

static mrc_extent asked;

static int64_t device_work(mrc_backend *backend, const mrc_extent *work)
{
    (void)backend;
    asked = *work;
    return 100000;
}

static mrc_capabilities device_capabilities(const mrc_backend *backend, bool half)
{
    (void)backend, (void)half;
    return (mrc_capabilities){.memory = MRC_CUDA,
                              .rate = 100e12,
                              .rate_double = 30e12,
                              .rate_differences = 20e12,
                              .bandwidth = 3e12,
                              .cached_size = 6};
}

static int64_t device_memory(mrc_backend *backend)
{
    (void)backend;
    return (int64_t)3 << 30;
}

/* A device reports its own rates and the memory of its operations; the margin is 512 MiB and a sixteenth. */
static void test_device(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for(NULL);
    mrc_plan_request request = made_request(&options);
    mrc_backend *own = context->backend, fake = *own;
    mrc_backend_ops ops = *own->ops;
    ops.free_memory = device_memory, ops.capabilities = device_capabilities, ops.work_bytes = device_work;
    fake.ops = &ops;
    made_caching.block = 0, made_cost.set_up.set_up = (mrc_bytes){0, 0};
    request.norm = 1;
    request.machine.backend = &fake, request.machine.free_memory = device_memory(&fake);
    assert_succeeds(context, plan_made(&plan, &request));
    mrc_planner first = seen;
    request.real = MERCER_F64;
    assert_succeeds(context, plan_made(&plan, &request));
    assert_true(first.device && first.rate == 100e12 && first.rate_double == 30e12 && first.bandwidth == 3e12);
    assert_true(first.cached_size == 6 && first.problem.effort == 5);
    assert_true(seen.cached_size == 8 && seen.rate == 30e12);
    assert_int_equal(plan.budget, ((int64_t)3 << 30) * 15 / 16 - (512 << 20));
    assert_true(asked.rows == 100 && asked.centers == CENTERS && asked.features == FEATURES);
    assert_true(asked.outputs == OUTPUTS && asked.wide == 2 * OUTPUTS && asked.eigen == 0);
    assert_true(asked.points == MERCER_F32 && asked.real == MERCER_F64);
    assert_int_equal(plan.public_plan.bytes,
                     3340 + 100000 + CENTERS * (FEATURES * 4 + 2 * OUTPUTS * 8) + workspace(0, 100, 8, 4, 1));
    ops.work_bytes = NULL; /* a device without its own memory */
    assert_succeeds(context, plan_made(&plan, &request));
    assert_int_equal(plan.public_plan.bytes,
                     3340 + CENTERS * (FEATURES * 4 + 2 * OUTPUTS * 8) + workspace(0, 100, 8, 4, 1));
    assert_int_equal(mrc_plan_share(false, 1001), 500);
    assert_int_equal(mrc_plan_share(true, 800 << 20), 400 << 20);
}

static bool is_small(void *user, int64_t p)
{
    return p <= *(const int64_t *)user;
}

/* The largest size that fits. A critical batch that does not fit is halved until it does, but not below the planned
   batch. */
static void test_largest(void **state)
{
    (void)state;
    for (int64_t most = 0; most < 20; most++) assert_int_equal(mrc_plan_largest(20, is_small, &most), most);
    mrc_plan first, plan;
    mercer_train_options options = options_for(NULL);
    mrc_plan_request request = made_request(&options);
    made_cost.set_up.set_up = (mrc_bytes){0, 0}, made_caching.block = 0;
    options.memory = 3340 + workspace(4, 400, 4, 4, 1);
    assert_succeeds(context, plan_made(&first, &request));
    assert_string_equal(first.public_plan.text, "replaced: a test; now solver made\n");
    static const int64_t critical[] = {100, 150, 400, 401, 799, 3200, 7000},
                         batch[] = {100, 150, 400, 200, 399, 400, 218};
    for (int i = 0; i < 7; i++) {
        char line[128] = "";
        plan = first;
        request.critical_batch = critical[i];
        assert_succeeds(context, refine_plan(context, &plan, &request));
        assert_int_equal(plan.public_plan.batch, batch[i]);
        char bytes[MRC_BYTES_TEXT];
        mrc_bytes_text(bytes, 3340 + workspace(4, batch[i], 4, 4, 1));
        if (i > 0) snprintf(line, sizeof line, "refined: *m = %d; %s, ", (int)batch[i], bytes);
        const char *more = plan.public_plan.text + strlen(first.public_plan.text);
        assert_that(i > 0 ? strncmp(more, "refined: ", 9) == 0 && mentions(more, line) : !*more, "%d: %s",
                    (int)critical[i], more);
    }
    request.critical_batch = 0; /* nothing can be halved */
    options.memory = 3340 + workspace(4, 100, 4, 4, 1) - 1;
    assert_fails(context, refine_plan(context, &plan, &request), MERCER_ERROR_MEMORY, "too small");
}

/* A bandwidth is wide from a hundred times the median distance on. */
static void test_width(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for("direct");
    mrc_plan_request request = made_request(&options);
    for (int wide = 0; wide < 2; wide++) {
        request.spread = wide ? 100 : 99.9;
        assert_succeeds(context, make_plan(context, &plan, &request));
        assert_int_equal(plan.warning_count, wide);
        if (wide) assert_string_equal(plan.warnings[0].field, "bandwidth");
    }
    request.n = 1, request.p = 1, request.c = 1;
    assert_succeeds(context, make_plan(context, &plan, &request));
    int64_t *const sizes_of[] = {&request.n, &request.p, &request.c};
    for (int i = 0; i < 3; i++) {
        *sizes_of[i] = 0;
        assert_fails(context, make_plan(context, &plan, &request), MERCER_ERROR_SHAPE, "sample*center*output");
        *sizes_of[i] = 1;
    }
}

/* The text names the cached matrix, or its factor. */
static void test_text_of_the_cached_matrix(void **state)
{
    (void)state;
    static const struct {
        const char *solver, *projector;
        double roughness;
        int64_t centers;
        bool samples, matrix, factor;
    } cases[] = {{"ep4", "exact", 0, 2000, true, true, true},  {"ep4", "pcg", 0, 2000, true, true, false},
                 {"cg", NULL, 0.1, 2000, true, true, true},    {"cg", NULL, 0.5, 9000, true, true, false},
                 {"direct", NULL, 0, 2000, false, true, true}, {"gd", NULL, 0, INT64_C(2000000), false, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mrc_plan plan;
        mercer_train_options options = options_for(cases[i].solver);
        mrc_plan_request request = made_request(&options);
        request.n = 20000, request.p = cases[i].centers, request.roughness = cases[i].roughness;
        options.projector = cases[i].projector, options.memory = INT64_C(16) << 30;
        if (i != 4) options.epochs = 3; /* the option has an effect with every solver except direct */
        assert_succeeds(context, make_plan(context, &plan, &request));
        const char *found = strstr(plan.public_plan.text, "cached: ");
        assert_that(found, "%s: %s", cases[i].solver, plan.public_plan.text);
        char line[128];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(found, "\n"), found);
        assert_that(mentions(line, "K(X,Z)") == cases[i].samples && mentions(line, "K(Z,Z)") == cases[i].matrix &&
                        mentions(line, "factor") == cases[i].factor,
                    "%s: %s", cases[i].solver, line);
        assert_false(mentions(plan.public_plan.text, "polish"));
        assert_true(plan.warning_count == 0 && !mentions(plan.public_plan.text, ": epochs "));
    }
}

/* ---- Ranks ------------------------------------------------------------------------------------------- */

/* Three ranks have 3, 3 and 2 of 8 shards: 2, 2 and 1 nodes of the summation tree remain. */
static void check_ranks(const char *solver, const char *projector, mercer_dtype real)
{
    const double speed = 1e9, latency = 3e-6, p = 77, d = FEATURES, c = OUTPUTS, m = 100;
    const double e = (double)mrc_dtype_size(real);
    mercer_plan plan = {.struct_size = sizeof plan,
                        .batch = 100,
                        .period = 3,
                        .epochs = 2,
                        .nystrom = 40,
                        .eigenpairs = 5,
                        .cache_data = 1,
                        .flops = 1e9,
                        .seconds = 0.5};
    snprintf(plan.solver, sizeof plan.solver, "%s", solver);
    snprintf(plan.projector, sizeof plan.projector, "%s", projector);
    const mercer_shape shape = {.struct_size = sizeof shape,
                                .samples = 1000,
                                .centers = 77,
                                .features = FEATURES,
                                .outputs = OUTPUTS,
                                .points = MERCER_U8,
                                .weights = real};
    mercer_network network = {.struct_size = sizeof network,
                              .ranks = 3,
                              .shards = 8,
                              .bytes_per_second = speed,
                              .latency = latency,
                              .validation_rows = 2 * 2048 + 904};
    const mrc_problem problem = {.n = 1000,
                                 .p = 77,
                                 .d = FEATURES,
                                 .c = OUTPUTS,
                                 .real_size = mrc_dtype_size(real),
                                 .point_size = 1,
                                 .shards = 8,
                                 .ranks = 3,
                                 .nodes = 5.0 / 3};
    mrc_plan parts = {.public_plan = plan,
                      .solver = mrc_solver_find(solver),
                      .projector = mrc_projector_find(projector),
                      .preconditioner_sizes = {.sample = 40, .basis = 5, .stored = real},
                      .batch_block_bytes = 100 * 77 * mrc_dtype_size(real)};
    if (parts.projector) parts.projector_options = mrc_projector_options_of(&plan, parts.projector);
    mrc_solver_cost cost = {0};
    mrc_cost blocks, validation = {0};
    parts.solver->ops->cost(&problem, &parts, &cost);
    mrc_kernel_blocks_cost(&problem, parts.batch_block_bytes, 1, &blocks);
    mrc_cost_sums(&validation, &problem, 2048 * c * e, 2);
    mrc_cost_sums(&validation, &problem, 904 * c * e, 1);
    mercer_rank_plan out;
    mrc_plan_ranks(&out, &plan, &shape, &network, false);
    assert_true(out.struct_size == sizeof out && out.ranks == 3 && out.shards == 8);
    double sent = cost.batches * cost.batch.sent + cost.projections * cost.projection.sent + validation.sent;
    double rounds = cost.batches * cost.batch.rounds + cost.projections * cost.projection.rounds + validation.rounds;
    assert_true(cost.batch.sent > 0 && cost.projection.sent > 0 && cost.batch.rounds > 0 && cost.projection.rounds > 0);
    check_near(out.batch_bytes, cost.batch.sent, 1e-9);
    check_near(out.projection_bytes, cost.projection.sent, 1e-9);
    check_near(out.epoch_bytes, sent, 1e-6);
    check_near(out.batch_seconds, cost.batch.sent / speed + cost.batch.rounds * latency, 1e-15);
    check_near(out.projection_seconds, cost.projection.sent / speed + cost.projection.rounds * latency, 1e-15);
    check_near(out.epoch_seconds, sent / speed + rounds * latency, 1e-12);
    double all = cost.batches * mrc_cost_flops(&cost.batch), alike = cost.batches * cost.batch.alike;
    double of_projections = cost.projections * mrc_cost_flops(&cost.projection),
           their_alike = cost.projections * cost.projection.alike;
    double projecting = (of_projections - their_alike) / 3 + their_alike;
    double computing = (all - alike) / 3 + alike + projecting;
    check_near(out.compute_seconds, computing / 2e9, 1e-12 * computing);
    check_near(out.projection_share, projecting / computing, 1e-12);
    double model = p * (d + c * e), set_up = cost.set_up.held.replicated + cost.set_up.set_up.replicated;
    mrc_bytes held = mrc_bytes_add(mrc_bytes_add(cost.set_up.held, cost.set_up.peak), blocks.held);
    double whole = held.replicated + m * (d + 8 * c + 3 * c * e) + 3 * m * c * e; /* at most 3 shards */
    check_near(out.shared_bytes, (model + held.shared) / 3, 1e-6);
    check_near(out.replicated_bytes, fmax(whole, set_up), 1e-6);
    check_near(out.checkpoint_bytes, model + cost.set_up.state, 1e-6);
    network.latency = 0; /* instead of 20 microseconds */
    mercer_rank_plan slower;
    mrc_plan_ranks(&slower, &plan, &shape, &network, false);
    check_near(slower.batch_seconds - out.batch_seconds, cost.batch.rounds * 17e-6, 1e-12);
    plan.seconds = 0; /* unknown rate: the plan reports flops instead */
    mrc_plan_ranks(&slower, &plan, &shape, &network, false);
    check_near(slower.compute_seconds, computing, 1e-9 * computing);
}

static void test_ranks(void **state)
{
    (void)state;
    check_ranks("ep4", "exact", MERCER_F32);
    check_ranks("cg", "none", MERCER_F64);
    check_ranks("cg", "none", MERCER_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_cached_matrix),
        cmocka_unit_test(test_time),    cmocka_unit_test(test_device),
        cmocka_unit_test(test_largest), cmocka_unit_test(test_width),
        cmocka_unit_test(test_ranks),   cmocka_unit_test(test_text_of_the_cached_matrix),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
