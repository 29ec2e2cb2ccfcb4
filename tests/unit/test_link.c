/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The link between GPUs (mercer_nccl.so), if there is a GPU: one rank that exchanges with itself, and one that waits
 * for a second rank that never arrives. The use of links is tested with a fake one in tests/ranks.
 */
#include "comm/comm.h"
#include "support/backends.h"
#include "support/data.h"

#include "core/clock.h"

#include <cmocka.h>

typedef struct stage {
    mercer_context *context;
    mrc_backend *backend;
    const mrc_link_module *module;
} stage;

/* Return false without a GPU or without the module. */
static bool open_stage(stage *out)
{
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    const void *table;
    options.backend = "cuda";
    if (mercer_context_create(&out->context, &options) != MERCER_OK) return false;
    out->backend = out->context->backend;
    mercer_status status = mrc_module_load(out->context, "nccl", MRC_LINK_SYMBOL, &table);
    out->module = table;
    if (status == MERCER_OK) return true;
    assert_int_equal(status, MERCER_ERROR_UNSUPPORTED);
    mercer_context_free(out->context);
    return false;
}

/* Poll for up to `seconds`; return true if the operation completed. */
static bool wait_done(const stage *self, void *link, double seconds)
{
    mrc_comm_error outcome = {.kind = MRC_COMM_ERROR_DONE};
    for (double end = mrc_seconds() + seconds; mrc_seconds() < end;) {
        if (self->module->poll(link, &outcome)) return true;
        assert_that(outcome.kind == MRC_COMM_ERROR_DONE, "%s", outcome.text);
    }
    return false;
}

static void *join(const stage *self, int ranks)
{
    unsigned char id[MRC_LINK_ID] = {0};
    mrc_comm_error outcome = {.kind = MRC_COMM_ERROR_DONE};
    void *link;
    self->module->identify(id, &outcome);
    if (outcome.kind == MRC_COMM_ERROR_DONE) self->module->open(&link, id, 0, ranks, 0, &outcome);
    assert_that(outcome.kind == MRC_COMM_ERROR_DONE, "%s", outcome.text);
    return link;
}

static mercer_matrix on_device(const stage *self, int64_t bytes)
{
    mercer_matrix out = mrc_view(NULL, 1, bytes, MERCER_U8);
    out.memory = MRC_CUDA;
    assert_succeeds(self->context, self->backend->ops->alloc(self->backend, &out.data, bytes, "a test"));
    return out;
}

static void test_a_rank_with_itself(void **state)
{
    static const int64_t sizes[] = {1, 1000, 10000019};
    (void)state;
    stage self;
    if (!open_stage(&self)) skip();
    void *link = join(&self, 1);
    assert_true(wait_done(&self, link, 60));
    for (int i = 0; i < 3; i++) {
        mercer_matrix from = on_device(&self, sizes[i]), to = on_device(&self, sizes[i]);
        mercer_matrix sent = data_matrix(1, sizes[i], 0, MERCER_U8), got = data_matrix(1, sizes[i], 0, MERCER_U8);
        for (int64_t j = 0; j < sizes[i]; j++) ((uint8_t *)sent.data)[j] = (uint8_t)(j * 31 + j / 251 + i);
        assert_succeeds(self.context, self.backend->ops->copy(self.backend, &from, &sent));
        assert_succeeds(self.context, self.backend->ops->clear(self.backend, &to));
        assert_succeeds(self.context, self.backend->ops->sync(self.backend));
        mrc_piece send = {from.data, sizes[i]}, receive = {to.data, sizes[i]};
        mrc_comm_error outcome = {.kind = MRC_COMM_ERROR_DONE};
        self.module->start(link, &send, &receive, &outcome);
        assert_that(outcome.kind == MRC_COMM_ERROR_DONE, "%s", outcome.text);
        assert_true(wait_done(&self, link, 20));
        assert_succeeds(self.context, self.backend->ops->copy(self.backend, &got, &to));
        assert_memory_equal(got.data, sent.data, (size_t)sizes[i]);
        self.backend->ops->free(self.backend, from.data);
        self.backend->ops->free(self.backend, to.data);
        free(sent.data);
        free(got.data);
    }
    self.module->close(link, 1);
    mercer_context_free(self.context);
}

static void test_missing_rank(void **state)
{
    (void)state;
    stage self;
    if (!open_stage(&self)) skip();
    void *link = join(&self, 2);
    assert_false(wait_done(&self, link, 1));
    double begin = mrc_seconds();
    self.module->close(link, 0);
    assert_true(mrc_seconds() - begin < 20);
    mercer_context_free(self.context);
}

static void test_places(void **state)
{
    (void)state;
    stage self;
    if (!open_stage(&self)) skip();
    char place[MRC_LINK_PLACE] = "";
    mrc_comm_error outcome = {.kind = MRC_COMM_ERROR_DONE};
    self.module->place(0, place, &outcome);
    assert_int_equal(outcome.kind, MRC_COMM_ERROR_DONE);
    assert_true(strlen(place) > 4);
    self.module->place(4711, place, &outcome);
    assert_int_equal(outcome.kind, MRC_COMM_ERROR_FAILED);
    assert_true(strlen(outcome.text) > 4);
    mercer_context_free(self.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_a_rank_with_itself),
                                       cmocka_unit_test(test_missing_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
