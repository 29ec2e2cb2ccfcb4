/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner: its choices, that the plan's text reports them, and that a training run stays within its memory
   budget. */
#include "support/plans.h"
#include "support/sources.h"
#include "support/training.h"

#include "backends/backend.h"
#include "plan/plan.h"
#include "solvers/normal/exact_solvers.h"

/* A request with sizes for which no data need to exist: tests the planner itself, without a model. */
static mrc_plan_request request_for(sizes of, const mercer_train_options *options)
{
    mrc_plan_request request = {.machine = mrc_machine_of(context),
                                .options = options,
                                .n = of.n,
                                .p = of.p,
                                .d = of.d,
                                .c = of.c,
                                .real = MERCER_F32,
                                .points = MERCER_F32,
                                .shards = 1,
                                .threads = 4,
                                .bounded = true,
                                .rows_known = true};
    return request;
}

static mercer_status plan_for(mrc_plan *plan, sizes of, const mercer_train_options *options)
{
    mrc_plan_request request = request_for(of, options);
    return make_plan(context, plan, &request);
}

static const int64_t GIB = (int64_t)1 << 30;

static void test_choices(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for(NULL);
    options.memory = 8 * GIB;
    assert_succeeds(context, plan_for(&plan, (sizes){100000, 500, 50, 10}, &options));
    assert_that(strcmp(plan.public_plan.solver, "direct") == 0 || strcmp(plan.public_plan.solver, "cg") == 0,
                "small p: %s", plan.public_plan.solver);
    /* Conjugate gradients are chosen where they reach the same loss in a fraction of the time. */
    static const sizes moderate[] = {{28800, 2000, 8, 1}, {4800, 3000, 784, 10}};
    for (int i = 0; i < 2; i++) {
        assert_succeeds(context, plan_for(&plan, moderate[i], &options));
        assert_string_equal(plan.public_plan.solver, "cg");
    }
    assert_succeeds(context, plan_for(&plan, (sizes){2000, 200, 5, 1}, &options)); /* negligible time either way */
    assert_string_equal(plan.public_plan.solver, "direct");
    assert_succeeds(context, plan_for(&plan, (sizes){1000000, 100000, 100, 10}, &options)); /* p^2: 40 GB in float */
    assert_string_equal(plan.public_plan.solver, "ep4");
    assert_string_equal(plan.public_plan.projector, "bgs");
    assert_true(plan.public_plan.carry && plan.public_plan.average && !plan.public_plan.cache_data &&
                !plan.public_plan.cache_centers);
    assert_true(plan.public_plan.eigenpairs <= 100000 / 10);
    options.solver = "direct";
    assert_fails(context, plan_for(&plan, (sizes){1000000, 100000, 100, 10}, &options), MERCER_ERROR_MEMORY, "memory");
    options.solver = "ep4", options.memory = 1 << 20;
    assert_fails(context, plan_for(&plan, (sizes){1000000, 100000, 100, 10}, &options), MERCER_ERROR_MEMORY, "ep4");
    options.solver = NULL;
    assert_fails(context, plan_for(&plan, (sizes){1000000, 100000, 100, 10}, &options), MERCER_ERROR_MEMORY, "memory");
    assert_fails(context, plan_for(&plan, (sizes){0, 10, 1, 1}, &options), MERCER_ERROR_SHAPE, "sample");
}

/* A sample with a much larger weight than the others bounds explicit steps: auto chooses them only if nothing else
   fits. */
static void test_heavy_sample(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for(NULL);
    options.memory = 64 * GIB;
    mrc_plan_request request = request_for((sizes){1000000, 60000, 20, 1}, &options);
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_string_equal(plan.public_plan.solver, "ep4");
    request.unevenness = MRC_UNEVEN_WEIGHTS;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_string_equal(plan.public_plan.solver, "ep4");
    request.unevenness *= 1.01;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_string_equal(plan.public_plan.solver, "cg");
    assert_true(mentions(plan.public_plan.text, "ep4"));
    options.memory = GIB;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_string_equal(plan.public_plan.solver, "ep4");
}

/* How conjugate gradients are preconditioned and what they cache, by size, roughness and memory. */
static void test_preconditioner(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for("cg");
    options.memory = 8 * GIB;
    mrc_plan_request request = request_for((sizes){60000, 10000, 784, 10}, &options);
    request.roughness = 0.5;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis > 0 && plan.preconditioner_sizes.stored == MERCER_F16);
    assert_true(plan.public_plan.cache_data == MRC_CACHE_HALF && plan.public_plan.batch < MRC_READ_ROWS);
    assert_true(mentions(plan.public_plan.text, "polynomial"));
    int64_t preconditioner = plan.public_plan.bytes;
    options.lambda = 1e-3; /* a ridge needs a product with K(Z,Z) itself */
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis > 0 && plan.preconditioner_sizes.stored == MERCER_F32);
    options.lambda = 0;
    request.roughness = 0.1; /* small eigenvalues matter: exact factor, in float */
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis == 0 && plan.public_plan.cache_data == 1 &&
                plan.public_plan.bytes > preconditioner);
    assert_false(mentions(plan.public_plan.text, "polynomial"));
    options.memory = GIB / 2; /* the factor would take 0.37 GiB of the memory */
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis > 0);
    options.memory = 8 * GIB;
    request = request_for((sizes){60000, 2000, 784, 10}, &options);
    request.roughness = 0.5; /* a small factor is cheap */
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis == 0 && plan.public_plan.cache_data == MRC_CACHE_HALF);
    request.n = 5000; /* reading a small cache is fast */
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.public_plan.cache_data == 1);
}

/* Centers are in shards only with several ranks, each of which would hold an exact factor: the plan uses no factor
   unless it is small or needed. */
static void test_preconditioner_of_shards(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for("cg");
    options.memory = 8 * GIB;
    mrc_plan_request request = request_for((sizes){60000, 2001, 784, 10}, &options);
    request.roughness = 0.5;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis == 0 && plan.public_plan.eigenpairs == 0 &&
                plan.public_plan.cache_centers == 1);
    for (request.shards = 2; request.shards <= 64; request.shards *= 2) {
        assert_succeeds(context, make_plan(context, &plan, &request));
        assert_true(plan.preconditioner_sizes.basis > 0 && plan.public_plan.cache_centers == MRC_CACHE_HALF);
        assert_true(plan.public_plan.eigenpairs == plan.preconditioner_sizes.basis &&
                    plan.public_plan.nystrom == plan.preconditioner_sizes.sample);
    }
    request.roughness = 0.1;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis == 0);
    request.roughness = 0.5, request.p = 1500;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_true(plan.preconditioner_sizes.basis == 0);
}

/* Cost of conjugate gradients on ranks, computed from sizes only. */
static void test_ranks_of_cg(void **state)
{
    (void)state;
    mercer_train_options options = options_for("cg");
    options.memory = 8 * GIB;
    mercer_shape shape = {
        .struct_size = sizeof shape, .samples = 60000, .centers = 4000, .features = 784, .outputs = 10};
    mercer_rank_plan ranks[3][2];
    for (int kind = 0; kind < 3; kind++) { /* one shard, with a factor; several shards; 8 */
        mercer_plan plan = {.struct_size = sizeof plan};
        shape.shards = kind == 0 ? 0 : kind == 1 ? -1 : 8;
        assert_succeeds(context, mercer_plan_shape(context, &plan, &shape, &options));
        assert_true((plan.eigenpairs > 0) == (kind > 0));
        for (int i = 0; i < 2; i++) {
            mercer_network network = {
                .struct_size = sizeof network, .ranks = i ? 4 : 1, .shards = 8, .bytes_per_second = 1e9};
            ranks[kind][i] = (mercer_rank_plan){.struct_size = sizeof(mercer_rank_plan)};
            assert_succeeds(context, mercer_plan_ranks(context, &ranks[kind][i], &plan, &shape, &network));
        }
        assert_true(ranks[kind][0].epoch_bytes == 0 && ranks[kind][1].epoch_bytes > 59 * ranks[kind][1].batch_bytes);
        assert_true(4 * ranks[kind][1].shared_bytes == ranks[kind][0].shared_bytes);
        assert_true(ranks[kind][1].compute_seconds < ranks[kind][0].compute_seconds);
    }
    assert_true(ranks[0][1].replicated_bytes > 4.0 * 4000 * 4000 && ranks[1][1].replicated_bytes < 3e7);
    assert_memory_equal(&ranks[1], &ranks[2], sizeof ranks[1]);
    shape.shards = -2;
    mercer_plan plan = {.struct_size = sizeof plan};
    assert_fails(context, mercer_plan_shape(context, &plan, &shape, &options), MERCER_ERROR_ARGUMENT, "shards is -2");
}

/* Roughness is 0 if other centers explain a center's kernel function, and 1 if they explain nothing of it. */
static void test_roughness(void **state)
{
    (void)state;
    mercer_matrix z = data_matrix(1200, 5, 0, MERCER_F32);
    data_fill_normal(&z, (mrc_rng){17, 1}, 0, 1);
    const char *const specs[] = {"gaussian:bandwidth=20", "laplace:bandwidth=20", "laplace:bandwidth=1",
                                 "laplace:bandwidth=0.01"};
    double before = -1, value;
    mrc_comm *comm;
    assert_succeeds(context, mrc_comm_create_virtual(&comm, context, 1));
    for (int i = 0; i < 4; i++) {
        mercer_kernel kernel;
        assert_succeeds(context, mercer_kernel_parse(&kernel, context, specs[i]));
        assert_succeeds(context, mrc_roughness(context->backend, comm, &kernel, &z, z.rows, NULL, &value));
        assert_that(value > before && value <= 1, "%s: %g after %g", specs[i], value, before);
        before = value;
    }
    assert_true(before > 0.99);
    for (int64_t i = 0; i < z.rows; i++) memcpy(mrc_row(&z, i), mrc_row(&z, 0), 5 * sizeof(float));
    mercer_kernel kernel;
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, specs[2]));
    assert_succeeds(context, mrc_roughness(context->backend, comm, &kernel, &z, z.rows, NULL, &value));
    assert_that(value < 1e-6, "equal centers: %g", value);
    z.rows = 1;
    assert_succeeds(context, mrc_roughness(context->backend, comm, &kernel, &z, z.rows, NULL, &value));
    assert_true(value == 0);
    mercer_comm_free(comm);
    free(z.data);
}

/* Explicit options are used unchanged, and the text reports every choice. */
static void test_text(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for("ep4");
    options.memory = 2 * GIB, options.projector = "bgs", options.nystrom = 777, options.eigenpairs = 33;
    options.batch = 123, options.period = 9, options.epochs = 4, options.projector_nystrom = 555;
    options.projector_eigenpairs = 44, options.projector_passes = 2, options.step_factor = 0.8, options.polish = 3;
    assert_succeeds(context, plan_for(&plan, (sizes){50000, 2000, 20, 3}, &options));
    const char *const parts[] = {"2.1 GB",    "s = 777", "q = 33",    "m = 123", "T = 9",    "bgs",
                                 "s = 555",   "q = 44",  "2 passes",  "carried", "4 epochs", "0.80",
                                 "averaging", "ep4",     "polish: 3", "flops"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_that(mentions(plan.public_plan.text, parts[i]), "'%s' is missing in:\n%s", parts[i],
                    plan.public_plan.text);
    assert_int_equal(plan.public_plan.nystrom, 777);
    assert_int_equal(plan.public_plan.projector_block > 0, 1);
    assert_true(plan.public_plan.bytes > 0 && plan.public_plan.flops > 0 && plan.public_plan.seconds > 0);
    options.eigenpairs = 400;
    assert_succeeds(context, plan_for(&plan, (sizes){50000, 2000, 20, 3}, &options));
    assert_true(mentions(plan.public_plan.text, "warning")); /* above p/10: warn about bias */
    options.eigenpairs = -1;
    assert_succeeds(context, plan_for(&plan, (sizes){50000, 2000, 20, 3}, &options));
    assert_int_equal(plan.public_plan.eigenpairs, 0);
}

/* ---- Options ------------------------------------------------------------------------------------------------- */

/* Sets training option number `which` and returns its name. */
static const char *set_option(mercer_train_options *options, int which)
{
    static const char *const names[] = {"projector",
                                        "projector_nystrom",
                                        "projector_eigenpairs",
                                        "projector_passes",
                                        "projector_tolerance",
                                        "projector_block",
                                        "carry",
                                        "period",
                                        "step_factor",
                                        "average",
                                        "decay",
                                        "polish"};
    switch (which) {
        case 0: options->projector = "exact"; break;
        case 1: options->projector_nystrom = 50; break;
        case 2: options->projector_eigenpairs = 5; break;
        case 3: options->projector_passes = 2; break;
        case 4: options->projector_tolerance = 0.1; break;
        case 5: options->projector_block = 30; break;
        case 6: options->carry = MERCER_ON; break;
        case 7: options->period = 3; break;
        case 8: options->step_factor = 0.5; break;
        case 9: options->average = MERCER_ON; break;
        case 10: options->decay = MERCER_ON; break;
        default: options->polish = 2; break;
    }
    return names[which];
}

/* No option is ignored: a solver on which it has no effect refuses it by name, and auto chooses a solver that
   supports it. */
static void test_no_option_is_ignored(void **state)
{
    (void)state;
    static const char *const solvers[] = {"direct", "cg", "ep2", "richardson", "gd", "ep3", "nytro", "ep4"};
    static const int useful_from[] = {12, 12, 8, 8, 8, 0, 0, 0}; /* options with smaller numbers have no effect */
    mrc_plan plan;
    sizes of = {3000, 300, 20, 2};
    for (int s = 0; s < 8; s++)
        for (int which = 0; which < 12; which++) {
            mercer_train_options options = options_for(solvers[s]);
            const char *name = set_option(&options, which);
            bool useful = which >= useful_from[s] && !(which == 7 && s >= 5 && s < 7); /* these project in every step */
            if (useful) {
                assert_succeeds(context, plan_for(&plan, of, &options));
                continue;
            }
            assert_fails(context, plan_for(&plan, of, &options), MERCER_ERROR_ARGUMENT, name);
            assert_fails(context, plan_for(&plan, of, &options), MERCER_ERROR_ARGUMENT, solvers[s]);
            options.solver = NULL;
            assert_succeeds(context, plan_for(&plan, of, &options));
            assert_string_equal(plan.public_plan.solver, "ep4");
            assert_true(mentions(plan.public_plan.text, "direct") && mentions(plan.public_plan.text, name));
        }
    mercer_train_options options = options_for("direct");
    options.average = options.decay = options.carry = MERCER_OFF, options.eigenpairs = -1; /* direct always does this */
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_int_equal(plan.warning_count, 0);
    options.epochs = 3;
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_true(mentions(plan.public_plan.text, ": epochs "));
    assert_int_equal(plan.warning_count, 1);
    assert_string_equal(plan.warnings[0].field, "epochs");
    options.solver = "cg";
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_false(mentions(plan.public_plan.text, ": epochs "));
    assert_int_equal(plan.warning_count, 0);
}

/* Every instruction set has a rate, and a better instruction set never has a lower one. */
static void test_rates(void **state)
{
    (void)state;
    mrc_plan plan;
    mercer_train_options options = options_for("cg");
    mrc_isa isa = context->isa;
    double before = INFINITY;
    for (int level = 0; level < MRC_ISA_COUNT; level++) {
        context->isa = (mrc_isa)level;
        mercer_status status = plan_for(&plan, (sizes){100000, 5000, 100, 10}, &options);
        context->isa = isa;
        assert_succeeds(context, status);
        assert_that(plan.public_plan.seconds <= before && plan.public_plan.seconds > 1e-3,
                    "level %d: %g s, the one before %g", level, plan.public_plan.seconds, before);
        before = plan.public_plan.seconds;
    }
}

/* The public lists equal the tables, and the error for an unknown name lists all names. */
static void test_lists(void **state)
{
    (void)state;
    static int (*const lists[])(mercer_solver_info *, int) = {mercer_solver_list, mercer_projector_list};
    mercer_solver_info info = MERCER_INIT(mercer_solver_info);
    mrc_plan plan;
    for (int list = 0; list < 2; list++) {
        mercer_train_options options = options_for(list ? "ep4" : "ep5");
        if (list) options.projector = "ep5";
        int count = 0;
        while (lists[list](&info, count)) count++;
        assert_true(count >= (list ? 4 : 11) && !lists[list](&info, count + 1) && !lists[list](&info, -1));
        for (int i = 0; i < count; i++) {
            assert_int_equal(lists[list](&info, i), 1);
            assert_int_equal(info.kind, list ? MERCER_SOLVER_NONE : mercer_solver_kind_of(info.name));
            mercer_train_options named = options_for(list ? "ep4" : info.name);
            if (list) named.projector = info.name;
            assert_true(strlen(info.name) < sizeof plan.public_plan.solver && strlen(info.description) > 10);
            assert_succeeds(context, plan_for(&plan, (sizes){300, 100, 5, 2}, &named));
            assert_string_equal(list ? plan.public_plan.projector : plan.public_plan.solver, info.name);
            assert_fails(context, plan_for(&plan, (sizes){300, 100, 5, 2}, &options), MERCER_ERROR_ARGUMENT, info.name);
        }
    }
}

static void test_kinds(void **state)
{
    (void)state;
    assert_int_equal(mercer_solver_kind_of("direct"), MERCER_SOLVER_DIRECT);
    assert_int_equal(mercer_solver_kind_of("cg"), MERCER_SOLVER_STEPS);
    assert_int_equal(mercer_solver_kind_of("ep4"), MERCER_SOLVER_BATCHES);
    assert_int_equal(mercer_solver_kind_of("gd"), MERCER_SOLVER_BATCHES);
    assert_int_equal(mercer_solver_kind_of("ep2"), MERCER_SOLVER_ON_SAMPLES);
    assert_int_equal(mercer_solver_kind_of("auto"), MERCER_SOLVER_NONE);
    assert_int_equal(mercer_solver_kind_of(NULL), MERCER_SOLVER_NONE);
}

/* More memory never makes a plan fail, and a plan never exceeds its budget, over a grid of sizes. */
static void test_budgets(void **state)
{
    (void)state;
    static const int64_t ns[] = {1, 1000, 1000000}, ps[] = {1, 100, 5000, 200000}, ds[] = {1, 800}, cs[] = {1, 100};
    static const char *const solvers[] = {NULL, "direct", "cg", "ep4", "ep3", "nytro", "gd", "ep2"};
    mrc_plan plan;
    int fitted = 0, refused = 0;
    for (size_t i = 0; i < 3 * 4 * 2 * 2 * 8; i++) {
        sizes of = {ns[i % 3], ps[i / 3 % 4], ds[i / 12 % 2], cs[i / 24 % 2]};
        mercer_train_options options = options_for(solvers[i / 48]);
        bool before = false;
        for (options.memory = 1 << 16; options.memory <= 1024 * GIB; options.memory *= 8) {
            mercer_status status = plan_for(&plan, of, &options);
            assert_true(status == MERCER_OK || status == MERCER_ERROR_MEMORY);
            if (status != MERCER_OK) assert_true(mentions(mercer_last_error(context), "memory"));
            assert_that(status == MERCER_OK || !before, "n %d p %d: %lld bytes are refused, less was fine", (int)of.n,
                        (int)of.p, (long long)options.memory);
            before = before || status == MERCER_OK;
            fitted += status == MERCER_OK, refused += status != MERCER_OK;
            if (status == MERCER_OK)
                assert_that(plan.public_plan.bytes <= options.memory,
                            "%s, n %d p %d d %d c %d: %lld bytes planned of %lld", plan.public_plan.solver, (int)of.n,
                            (int)of.p, (int)of.d, (int)of.c, (long long)plan.public_plan.bytes,
                            (long long)options.memory);
        }
    }
    assert_true(fitted > 500 && refused > 500);
}

/* ---- A device ------------------------------------------------------------------------------------------------ */

static int64_t device_free;

static int64_t fake_free(mrc_backend *backend)
{
    (void)backend;
    return device_free;
}

static mrc_capabilities fake_capabilities(const mrc_backend *backend, bool half)
{
    (void)half;
    (void)backend;
    return (mrc_capabilities){
        .isa = "fake", .memory = MRC_CUDA, .rate = 500e12, .rate_double = 40e12, .bandwidth = 3e12};
}

static int64_t fake_work(mrc_backend *backend, const mrc_extent *work)
{
    (void)backend;
    return 2 * work->centers * work->features + ((int64_t)64 << 20);
}

/* Calls the planner of a context whose matrices are on a device with `device_free` bytes of free memory. */
static mercer_status plan_on_device(mrc_plan *plan, sizes of, const mercer_train_options *options)
{
    mrc_backend *own = context->backend, fake = *own;
    mrc_backend_ops ops = *own->ops;
    ops.free_memory = fake_free, ops.capabilities = fake_capabilities, ops.work_bytes = fake_work;
    fake.ops = &ops;
    context->backend = &fake;
    mercer_status status = plan_for(plan, of, options);
    context->backend = own;
    return status;
}

/* Without a memory option the budget is all free memory minus a margin, and the plan counts the device's own memory. */
static void test_device_budget(void **state)
{
    (void)state;
    mrc_plan plan, host;
    mercer_train_options options = options_for("ep4");
    options.projector = "bgs";
    sizes of = {500000, 131072, 1280, 10};
    device_free = 139 * GIB;
    assert_succeeds(context, plan_on_device(&plan, of, &options));
    assert_true(plan.budget < device_free && plan.budget > device_free * 9 / 10);
    assert_true(plan.public_plan.bytes <= plan.budget);
    assert_true(mentions(plan.public_plan.text, "device"));
    options.memory = plan.budget, options.cache = MERCER_OFF, options.batch = 4096;
    assert_succeeds(context, plan_on_device(&plan, of, &options));
    assert_succeeds(context, plan_for(&host, of, &options));
    int64_t own = of.p * of.d * 4 + 2 * of.p * of.d; /* the centers, and the device's copy of them */
    int64_t tiles = 4 * ((6 << 20) + 812 * 4 * of.d + 512 * 32 * of.c);
    assert_true(plan.public_plan.bytes >= host.public_plan.bytes - tiles + own);
    assert_true(mentions(plan.public_plan.text, "given"));
    device_free = 600 << 20; /* the margin is at most half of the memory */
    options.memory = 0;
    assert_succeeds(context, plan_on_device(&plan, (sizes){1000, 100, 5, 2}, &options));
    assert_int_equal(plan.budget, device_free / 2);
}

/* The p that an error message names fits; one more center does not. */
static void check_named(sizes of, const mercer_train_options *options, bool device)
{
    mrc_plan plan;
    mercer_status status = device ? plan_on_device(&plan, of, options) : plan_for(&plan, of, options);
    assert_that(status == MERCER_ERROR_MEMORY, "%s on %s: %s", options->solver ? options->solver : "auto",
                device ? "device" : "host", plan.public_plan.text);
    const char *found = strstr(mercer_last_error(context), "largest p ");
    assert_that(found, "%s", mercer_last_error(context));
    int64_t most = strtoll(found + strcspn(found, "0123456789"), NULL, 10);
    assert_true(most > 0 && most < of.p);
    bool samples = options->solver && strcmp(options->solver, "ep2") == 0;
    for (int more = 0; more < 2; more++) {
        of.p = most + more;
        if (samples) of.n = of.p;
        status = device ? plan_on_device(&plan, of, options) : plan_for(&plan, of, options);
        assert_that((status == MERCER_OK) == !more, "%s, p = %lld: status %d", options->solver, (long long)of.p,
                    (int)status);
    }
}

static void test_largest_p(void **state)
{
    (void)state;
    static const char *const solvers[] = {NULL, "ep4", "ep3", "ep3-exact", "direct", "cg", "gd", "ep2"};
    for (int i = 0; i < 8; i++) {
        mercer_train_options options = options_for(solvers[i]);
        options.batch = 2048, options.nystrom = 2000;
        int64_t p = 8000000;
        device_free = 12 * GIB;
        check_named((sizes){i == 7 ? p : 20000000, p, 1280, 10}, &options, true);
        options.memory = GIB;
        check_named((sizes){i == 7 ? p : 20000000, p, 1280, 10}, &options, false);
    }
    mrc_plan plan;
    mercer_train_options options = options_for("ep4");
    device_free = 1 << 20;
    assert_fails(context, plan_on_device(&plan, (sizes){1000, 100, 5, 2}, &options), MERCER_ERROR_MEMORY, "centers");
}

/*
 * Training runs with a range of budgets: each is refused with a message, or its measured memory is within the budget.
 * The plan counts a generous share for the tiles of each thread (6 MiB and some rows), which small problems do not use:
 * measured and planned bytes may differ by that, and beyond it by half.
 */
static void test_measured_peak(void **state)
{
    (void)state;
    static const sizes large[] = {{300, 40, 5, 1}, {1200, 250, 20, 3}, {1500, 500, 10, 10}, {400, 700, 40, 2}};
    static const sizes small[] = {{300, 40, 5, 1}, {700, 150, 20, 3}, {900, 250, 10, 10}, {200, 400, 40, 2}};
    const sizes *grid = SANITIZED ? small : large;
    static const struct {
        const char *solver, *projector;
    } ways[] = {{NULL, NULL},   {"direct", NULL}, {"cg", NULL},   {"ep4", "exact"}, {"ep4", "pcg"},
                {"ep4", "bgs"}, {"ep4", "ep2"},   {"ep3", "ep2"}, {"nytro", NULL},  {"gd", NULL}};
    int trained = 0, refused = 0;
    for (size_t g = 0; g < 4; g++) {
        task t = task_open(context, "laplace:bandwidth=4", grid[g], 1, MERCER_F32);
        for (size_t w = SANITIZED ? g % 2 : 0; w < sizeof ways / sizeof *ways; w += SANITIZED ? 2 : 1)
            for (int64_t memory = 8 << 20; memory <= 256 << 20; memory *= SANITIZED ? 16 : 4) {
                /* A separate context: scratch memory that earlier runs left allocated would not be counted. */
                int threads = w % 2 ? 3 : 1;
                mercer_context *own = open_context(threads);
                mercer_model *model;
                mercer_source source;
                mercer_trainer *trainer;
                mercer_report report = {.struct_size = sizeof report};
                mercer_train_options options = options_for(ways[w].solver);
                options.projector = ways[w].projector, options.memory = memory, options.epochs = 2;
                assert_succeeds(own, mercer_model_create(&model, own, NULL, &t.kernel, &t.z, grid[g].c, 0));
                assert_succeeds(own, source_from_matrices(&source, own, &t.x, &t.y, NULL, 7));
                assert_succeeds(own, mercer_trainer_create(&trainer, model, NULL, &options));
                mercer_status status = mercer_trainer_fit(trainer, &source, &report);
                const char *name = ways[w].solver ? ways[w].solver : "auto";
                if (status == MERCER_OK) {
                    trained++;
                    assert_that(report.peak_bytes <= memory, "%s %s, p %d: held %lld of %lld bytes, planned %lld", name,
                                report.plan->projector, (int)grid[g].p, (long long)report.peak_bytes, (long long)memory,
                                (long long)report.plan->bytes);
                    assert_that(report.peak_bytes <= report.plan->bytes, "%s %s, p %d: held %lld bytes, planned %lld",
                                name, report.plan->projector, (int)grid[g].p, (long long)report.peak_bytes,
                                (long long)report.plan->bytes);
                    int64_t tiles = threads * ((6 << 20) + 812 * 4 * grid[g].d + 512 * 32 * grid[g].c);
                    assert_that(report.plan->bytes <= 2 * report.peak_bytes + tiles,
                                "%s %s, p %d: planned %lld bytes, held only %lld", name, report.plan->projector,
                                (int)grid[g].p, (long long)report.plan->bytes, (long long)report.peak_bytes);
                } else {
                    refused++;
                    assert_that(status == MERCER_ERROR_MEMORY, "%s: %s", name, mercer_last_error(own));
                    assert_true(mentions(mercer_last_error(own), "budget"));
                }
                mercer_trainer_free(trainer);
                mercer_source_free(&source);
                mercer_model_free(model);
                mercer_context_free(own);
            }
        task_close(&t);
    }
    assert_true(trained > (SANITIZED ? 20 : 40) && refused > 0);
}

/* ---- The cache in half precision ----------------------------------------------------------------------------- */

/* A budget in which K(X,Z) fits in half precision but not in float. */
static int64_t budget_for_half(const mrc_plan *with_floats, sizes of)
{
    return with_floats->public_plan.bytes - of.n * of.p * 4 / 4;
}

static void test_half_only_where_float_does_not_fit(void **state)
{
    (void)state;
    const sizes of = {200000, 1000, 20, 3};
    mrc_plan plan;
    mercer_train_options options = options_for("ep4");
    options.memory = 4 * GIB, options.epochs = 5;
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_int_equal(plan.public_plan.cache_data, 1);
    options.memory = budget_for_half(&plan, of);
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_int_equal(plan.public_plan.cache_data, MRC_CACHE_HALF);
    assert_true(mentions(plan.public_plan.text, "half precision"));
    assert_true(plan.public_plan.bytes <= options.memory);
    mrc_plan_request request = request_for(of, &options);
    request.bounded = false; /* values that half precision may not represent */
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_int_equal(plan.public_plan.cache_data, 0);
    request = request_for(of, &options);
    request.real = MERCER_F64;
    assert_succeeds(context, make_plan(context, &plan, &request));
    assert_int_equal(plan.public_plan.cache_data, 0);
    options.polish = 1;
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_int_equal(plan.public_plan.cache_data, 0);
    options.polish = 0, options.cache = MERCER_OFF;
    assert_succeeds(context, plan_for(&plan, of, &options));
    assert_int_equal(plan.public_plan.cache_data, 0);
}

/* Predictions change by the rounding of K, and memory stays within the plan. */
static void test_half_precision_trains_equally(void **state)
{
    (void)state;
    const sizes of = {20000, 300, 4, 2};
    task self = task_open(context, "laplace:bandwidth=3", of, 1, MERCER_F32);
    mercer_train_options options = options_for("ep4");
    options.epochs = 4, options.memory = GIB;
    mercer_report report;
    dense whole = train_as(&self, &options, 0, MERCER_F32, &report);
    assert_int_equal(report.plan->cache_data, 1);
    options.memory = report.plan->bytes - of.n * of.p;
    dense halves = train_as(&self, &options, 0, MERCER_F32, &report);
    assert_int_equal(report.plan->cache_data, MRC_CACHE_HALF);
    assert_true(report.peak_bytes <= report.plan->bytes);
    double worst = 0, size = 0, moved = 0;
    for (int64_t i = 0; i < 200; i++) { /* f(x) of both models on samples */
        for (int64_t k = 0; k < of.c; k++) {
            double a = 0, b = 0;
            for (int64_t j = 0; j < of.p; j++) {
                double x[4], z[4], value;
                for (int64_t l = 0; l < of.d; l++) x[l] = mrc_load(&self.x, i, l), z[l] = mrc_load(&self.z, j, l);
                assert_true(mrc_kernel_reference(&self.kernel, of.d, x, z, &value));
                a += value * whole.a[j * of.c + k], b += value * halves.a[j * of.c + k];
            }
            worst = fmax(worst, fabs(a - b)), size = fmax(size, fabs(a)), moved += fabs(a - b);
        }
    }
    print_message("half precision moves predictions by at most %.2g of %.2g\n", worst, size);
    assert_true(moved > 0); /* the half-precision cache was used */
    assert_true(worst < 0.02 * size);
    free(whole.a), free(halves.a);
    task_close(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_preconditioner),
        cmocka_unit_test(test_preconditioner_of_shards),
        cmocka_unit_test(test_ranks_of_cg),
        cmocka_unit_test(test_roughness),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_heavy_sample),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_no_option_is_ignored),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_device_budget),
        cmocka_unit_test(test_largest_p),
        cmocka_unit_test(test_measured_peak),
        cmocka_unit_test(test_half_only_where_float_does_not_fit),
        cmocka_unit_test(test_half_precision_trains_equally),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
