/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives made of exchanges.
 *
 *   sum over S shards       sigma(k, i) = sigma(k - 1, 2 i) + sigma(k - 1, 2 i + 1),  sigma(0, i) = part of shard i
 *
 * Node (k, i) of the tree stands for shards i 2^k .. (i + 1) 2^k - 1, those beyond S left out. A rank adds up what lies
 * wholly within its own shards: at most 2 log2 S nodes are left, one where S / R is a power of two. Then, of N elements,
 * rank r gets the nodes of all ranks for elements N r / R .. N (r + 1) / R, finishes the tree for them and hands the
 * result to all. The tree is the same for any R, and so is the sum, to the bit.
 *
 * Cost of a rank: it sends and receives (nodes + 1) N (R - 1) / R elements, 2 N for one node: as much as the best ring. A
 * sum of few elements goes in one round, in which everybody sends its nodes to everybody.
 */
#include "comm/comm.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ONE_ROUND_BYTES = 8192, MOST_NODES = 64, MOST_LEVELS = 30 };

static mercer_status exchange(mrc_comm *comm, const mrc_piece *send, const mrc_piece *receive)
{
    if (comm->ranks == 1) return MERCER_OK;
    if (comm->broken)
        return mrc_fail(comm->context, MERCER_ERROR_COMM, "the ranks have lost each other; the job must be resumed");
    for (int r = 0; r < comm->ranks; r++) {
        if (r == comm->rank) continue;
        comm->bytes_sent += send[r].bytes;
        comm->bytes_received += receive[r].bytes;
    }
    comm->exchanges++;
    mercer_status status = comm->ops->exchange(comm, send, receive);
    if (status != MERCER_OK) comm->broken = true;
    return status;
}

/* ---- The tree ------------------------------------------------------------------------------------------------- */

typedef struct node {
    int level, index;
    char *data; /* its elements */
} node;

typedef struct tree {
    int all; /* S */
    mercer_dtype dtype;
    int count;
    node nodes[MOST_NODES]; /* that are known, by shards */
} tree;

/* The nodes that lie wholly in shards first .. end - 1, as large as possible, without data. */
static int list_nodes(int all, int first, int end, node *out)
{
    int count = 0;
    while (first < end) {
        int level = 0;
        while (level < MOST_LEVELS && first % (2 << level) == 0 &&
               ((int64_t)first + (2 << level) <= end || (end == all && (1 << level) < end - first)))
            level++;
        out[count++] = (node){.level = level, .index = first >> level};
        first = (int)mrc_min((int64_t)((first >> level) + 1) << level, end);
    }
    return count;
}

int mrc_comm_node_count(int all, int first, int end)
{
    node nodes[MOST_NODES];
    return list_nodes(all, first, end, nodes);
}

static void add(mercer_dtype dtype, char *to, const char *from, int64_t elements)
{
    if (dtype == MERCER_F64)
        for (int64_t i = 0; i < elements; i++) ((double *)(void *)to)[i] += ((const double *)(const void *)from)[i];
    else
        for (int64_t i = 0; i < elements; i++) ((float *)(void *)to)[i] += ((const float *)(const void *)from)[i];
}

/* sigma(level, index) in the memory of its first known node, which is returned. */
static char *sum_node(const tree *self, int level, int index, int64_t elements)
{
    for (int i = 0; i < self->count; i++)
        if (self->nodes[i].level == level && self->nodes[i].index == index) return self->nodes[i].data;
    if (level <= 0) return self->nodes[0].data; /* not met: every shard is known, by itself or in a larger node */
    char *left = sum_node(self, level - 1, 2 * index, elements);
    if ((int64_t)(2 * index + 1) << (level - 1) < self->all)
        add(self->dtype, left, sum_node(self, level - 1, 2 * index + 1, elements), elements);
    return left;
}

static int top_level(int all)
{
    int level = 0;
    while ((1 << level) < all) level++;
    return level;
}

/* Adds up the local shards: nodes[i].data point into parts. Returns how many nodes there are. */
static int sum_local(mrc_shards shards, const mercer_matrix *parts, int64_t elements, node *nodes)
{
    int count = list_nodes(shards.all, shards.first, shards.first + shards.local, nodes);
    for (int i = 0; i < count; i++) {
        int begin = nodes[i].index << nodes[i].level;
        int end = (int)mrc_min((int64_t)begin + (1 << nodes[i].level), shards.all);
        /* Pairs of neighbours, then pairs of pairs: the tree from below, in place. */
        for (int step = 1; step < end - begin; step *= 2)
            for (int s = begin; s + step < end; s += 2 * step)
                add(parts->dtype, parts[s - shards.first].data, parts[s + step - shards.first].data, elements);
        nodes[i].data = parts[begin - shards.first].data;
    }
    return count;
}

/* ---- Sums ----------------------------------------------------------------------------------------------------- */

/* A sum under way. */
typedef struct sum_job {
    mrc_comm *comm;
    mrc_shards shards;
    mercer_dtype dtype;
    int64_t size, elements; /* of an element; how many */
    node own[MOST_NODES];
    int own_count;
    char *sent, *received; /* packed nodes */
} sum_job;

static int nodes_of(const sum_job *self, int rank, node *out)
{
    int64_t first, local;
    mrc_share(self->shards.all, self->comm->ranks, rank, &first, &local);
    return list_nodes(self->shards.all, (int)first, (int)(first + local), out);
}

/* Elements that rank r finishes: all of them for everybody in a sum of one round. */
static void slice_of(const sum_job *self, bool one_round, int rank, int64_t *first, int64_t *count)
{
    *first = 0, *count = self->elements;
    if (!one_round) mrc_share(self->elements, self->comm->ranks, rank, first, count);
}

/* My nodes' elements for each rank, one rank after the other; what comes from each rank for my slice. */
static mercer_status exchange_nodes(sum_job *self, bool one_round)
{
    mrc_comm *comm = self->comm;
    mrc_piece *send = comm->pieces, *receive = comm->pieces + comm->ranks;
    int64_t out = 0, in = 0, first, count, mine;
    node nodes[MOST_NODES];
    slice_of(self, one_round, comm->rank, &first, &mine);
    for (int r = 0; r < comm->ranks; r++) {
        slice_of(self, one_round, r, &first, &count);
        int64_t begin = out;
        for (int i = 0; i < self->own_count && (!one_round || r == 0); i++) {
            memcpy(self->sent + out, self->own[i].data + first * self->size, (size_t)(count * self->size));
            out += count * self->size;
        }
        send[r] = one_round ? (mrc_piece){self->sent, out} : (mrc_piece){self->sent + begin, out - begin};
        receive[r] = (mrc_piece){self->received + in, nodes_of(self, r, nodes) * mine * self->size};
        in += receive[r].bytes;
    }
    memcpy(receive[comm->rank].data, send[comm->rank].data, (size_t)send[comm->rank].bytes);
    return exchange(comm, send, receive);
}

/* The tree over all ranks' nodes of my slice. */
static char *finish_tree(const sum_job *self, int64_t elements)
{
    const mrc_comm *comm = self->comm;
    tree all = {.all = self->shards.all, .dtype = self->dtype};
    char *at = self->received;
    node list[MOST_NODES];
    /* Ranks in turn: nodes of neighbours are added as soon as both are there, so that the list stays short. */
    for (int r = 0; r < comm->ranks; r++) {
        int count = nodes_of(self, r, list);
        for (int i = 0; i < count; i++, at += elements * self->size) {
            node *last = &all.nodes[all.count++];
            *last = (node){list[i].level, list[i].index, at};
            while (all.count > 1 && last->index % 2 == 1 && last[-1].level == last->level &&
                   last[-1].index == last->index - 1) {
                add(self->dtype, last[-1].data, last->data, elements);
                last--, all.count--;
                last->level++, last->index /= 2;
            }
        }
    }
    return sum_node(&all, top_level(self->shards.all), 0, elements);
}

static mercer_status sum_ranks(sum_job *self, char *result)
{
    mrc_comm *comm = self->comm;
    bool one_round = self->elements * self->size <= ONE_ROUND_BYTES;
    int64_t first, mine;
    slice_of(self, one_round, comm->rank, &first, &mine);
    MRC_TRY(exchange_nodes(self, one_round));
    const char *sum = finish_tree(self, mine);
    memcpy(result + first * self->size, sum, (size_t)(mine * self->size));
    if (one_round) return MERCER_OK;
    mrc_piece *slices = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) {
        int64_t count;
        slice_of(self, false, r, &first, &count);
        slices[r] = (mrc_piece){result + first * self->size, count * self->size};
    }
    return mrc_comm_gather(comm, slices);
}

mercer_status mrc_comm_sum(mrc_comm *comm, mrc_shards shards, const mercer_matrix *parts)
{
    sum_job job = {.comm = comm,
                   .shards = shards,
                   .dtype = parts->dtype,
                   .size = mrc_dtype_size(parts->dtype),
                   .elements = parts->rows * parts->cols};
    if (job.elements == 0 || shards.all == 1) return MERCER_OK;
    job.own_count = sum_local(shards, parts, job.elements, job.own);
    if (comm->ranks == 1) return MERCER_OK; /* one node, which begins at parts[0] */
    int64_t nodes = 0;
    void *memory;
    node list[MOST_NODES];
    for (int r = 0; r < comm->ranks; r++) nodes += nodes_of(&job, r, list);
    int64_t slice = job.elements * job.size <= ONE_ROUND_BYTES ? job.elements : job.elements / comm->ranks + 1;
    int64_t sent = job.own_count * job.elements * job.size, received = nodes * slice * job.size;
    MRC_TRY(mrc_alloc(comm->context, &memory, mrc_round_up(sent, 64) + received, 1, "sums over ranks"));
    job.sent = memory;
    job.received = job.sent + mrc_round_up(sent, 64);
    mercer_status status = sum_ranks(&job, parts->data);
    mrc_free(comm->context, memory);
    return status;
}

/* ---- Others --------------------------------------------------------------------------------------------------- */

mercer_status mrc_comm_gather(mrc_comm *comm, const mrc_piece *all)
{
    if (comm->ranks == 1) return MERCER_OK;
    mrc_piece *send = comm->pieces;
    for (int r = 0; r < comm->ranks; r++) send[r] = all[comm->rank];
    return exchange(comm, send, all);
}

mercer_status mrc_comm_spread(mrc_comm *comm, int from, void *data, int64_t bytes)
{
    if (comm->ranks == 1) return MERCER_OK;
    mrc_piece *send = comm->pieces, *receive = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) {
        send[r] = (mrc_piece){data, comm->rank == from ? bytes : 0};
        receive[r] = (mrc_piece){data, r == from ? bytes : 0};
    }
    return exchange(comm, send, receive);
}

mercer_status mrc_comm_broadcast(mrc_comm *comm, void *data, int64_t bytes)
{
    return mrc_comm_spread(comm, 0, data, bytes);
}

/* A small record of every rank, in rank order; released by the caller. */
static mercer_status gather_records(mrc_comm *comm, const void *mine, int64_t bytes, char **out)
{
    void *memory;
    *out = NULL;
    MRC_TRY(mrc_alloc(comm->context, &memory, comm->ranks, bytes, "the ranks' answers"));
    char *records = memory;
    memcpy(records + comm->rank * bytes, mine, (size_t)bytes);
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks && comm->ranks > 1; r++) pieces[r] = (mrc_piece){records + r * bytes, bytes};
    mercer_status status = comm->ranks > 1 ? mrc_comm_gather(comm, pieces) : MERCER_OK;
    if (status == MERCER_OK)
        *out = records;
    else
        mrc_free(comm->context, memory);
    return status;
}

mercer_status mrc_comm_any(mrc_comm *comm, bool mine, bool *any)
{
    *any = mine;
    if (comm->ranks == 1) return MERCER_OK;
    char flag = mine, *flags;
    MRC_TRY(gather_records(comm, &flag, 1, &flags));
    for (int r = 0; r < comm->ranks; r++) *any = *any || flags[r];
    mrc_free(comm->context, flags);
    return MERCER_OK;
}

mercer_status mrc_comm_largest(mrc_comm *comm, double *value)
{
    if (comm->ranks == 1) return MERCER_OK;
    char *all;
    MRC_TRY(gather_records(comm, value, sizeof *value, &all));
    for (int r = 0; r < comm->ranks; r++) {
        double theirs;
        memcpy(&theirs, all + r * (int64_t)sizeof theirs, sizeof theirs);
        *value = fmax(*value, theirs);
    }
    mrc_free(comm->context, all);
    return MERCER_OK;
}

mercer_status mrc_comm_together(mrc_comm *comm, mercer_status status, const char *what)
{
    if (comm->ranks == 1 || comm->broken) return status;
    char text[MRC_ERROR_CHARS / 2] = "", *texts, mine[MRC_ERROR_CHARS];
    snprintf(mine, sizeof mine, "%s", status == MERCER_OK ? "" : mrc_error_text(comm->context));
    if (status != MERCER_OK) snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, mine[0] ? mine : "failed");
    MRC_TRY(gather_records(comm, text, sizeof text, &texts));
    for (int r = 0; r < comm->ranks && status == MERCER_OK; r++)
        if (texts[r * (int64_t)sizeof text])
            status = mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: rank %d: %s", what, r,
                              texts + r * (int64_t)sizeof text);
    mrc_free(comm->context, texts);
    return status;
}

/* Two sums of the bytes with different weights (Fletcher's, 64 bits): enough to notice a mistake, no defence. */
static void summarise(const unsigned char *data, int64_t bytes, uint64_t out[2])
{
    out[0] = (uint64_t)bytes, out[1] = 0x9E3779B97F4A7C15u;
    for (int64_t i = 0; i < bytes; i++) {
        out[0] = (out[0] ^ data[i]) * 0x100000001B3u;
        out[1] += out[0] ^ (out[1] << 7);
    }
}

mercer_status mrc_comm_agree(mrc_comm *comm, const char *what, const void *data, int64_t bytes)
{
    uint64_t mine[2], first[2], theirs[2];
    char *all;
    if (comm->ranks == 1) return MERCER_OK;
    summarise(data, bytes, mine);
    MRC_TRY(gather_records(comm, mine, sizeof mine, &all));
    mercer_status status = MERCER_OK;
    memcpy(first, all, sizeof first);
    for (int r = 1; r < comm->ranks && status == MERCER_OK; r++) {
        memcpy(theirs, all + r * (int64_t)sizeof theirs, sizeof theirs);
        if (memcmp(first, theirs, sizeof first) != 0)
            status = mrc_fail(comm->context, MERCER_ERROR_COMM, "rank %d has %s than rank 0; start all ranks alike", r,
                              what);
    }
    mrc_free(comm->context, all);
    return status;
}
