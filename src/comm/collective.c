/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations, implemented by exchanges.
 *
 *   sum over S shards       sigma(k, i) = sigma(k - 1, 2 i) + sigma(k - 1, 2 i + 1),  sigma(0, i) = part of shard i
 *
 * Node (k, i) of the tree covers shards i 2^k .. (i + 1) 2^k - 1; shards from S on do not exist and are skipped. First,
 * each rank adds up all nodes that its own shards cover; at most 2 log2 S nodes remain, one if S / R is a power of two.
 * Then rank r receives a slice of every rank's nodes: elements N r / R .. N (r + 1) / R of the N elements. It finishes
 * the tree for this slice and sends the result to all ranks. The tree is the same for any R, so that sums are bitwise
 * identical.
 *
 * Cost per rank: it sends and receives (nodes + 1) N (R - 1) / R elements. With one node per rank this is below 2 N,
 * the same as for an optimal ring. A sum of few elements takes only one round, in which every rank sends its whole
 * nodes to all other ranks, because latency then matters more than bytes.
 */
#include "comm/comm.h"

#include "core/matrix.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* S is an int, so a tree has at most 31 levels, and a rank's shards are covered by at most two nodes per level. */
enum { MOST_NODES = 64, MOST_LEVELS = 30 };

/* Exchanges pieces with all ranks, in host or device memory, and counts the bytes. If the exchange fails, this rank
   leaves, which closes the connection. */
static mercer_status exchange_pieces(mrc_comm *comm, mrc_memory memory, const mrc_piece *send, const mrc_piece *receive)
{
    if (comm->ranks == 1) return MERCER_OK;
    if (comm->broken)
        return mrc_fail(comm->context, MERCER_ERROR_COMM, "the connection between ranks is lost; resume the job");
    for (int r = 0; r < comm->ranks; r++) {
        if (r == comm->rank) continue;
        comm->bytes_sent += send[r].bytes;
        comm->bytes_received += receive[r].bytes;
    }
    comm->exchanges++;
    mercer_status status =
        memory == MRC_HOST ? mrc_comm_exchange(comm, send, receive) : mrc_link_exchange(comm, send, receive);
    if (status == MERCER_OK) return MERCER_OK;
    /* Leave at once: pending messages still point to memory that the caller is about to release. After leaving, no
       message is received any more. */
    char text[MRC_ERROR_CHARS];
    snprintf(text, sizeof text, "%s", mrc_last_error(comm->context));
    mrc_comm_leave(comm, comm->left_code, text);
    return status;
}

/* ---- The tree ------------------------------------------------------------------------------------------------- */

typedef struct node {
    int level, index;
    char *data; /* elements of the node */
} node;

/* A row of elements, and the worker for its memory (NULL: host memory). */
typedef struct elements_of {
    const mrc_worker *worker;
    mercer_dtype dtype;
    int64_t elements;
} elements_of;

typedef struct tree {
    int all;         /* S */
    elements_of row; /* size, type and memory of every node */
    int count;
    node nodes[MOST_NODES]; /* nodes known so far, in the order of their shards */
} tree;

static mrc_memory memory_of(const mrc_worker *worker)
{
    return worker ? worker->memory : MRC_HOST;
}

static mercer_matrix view_of(const elements_of *row, char *data)
{
    mercer_matrix view = mrc_view(data, 1, row->elements, row->dtype);
    view.memory = memory_of(row->worker);
    return view;
}

/* Adds the elements at `from` to the elements at `to`. */
static mercer_status add_elements(const elements_of *row, char *to, char *from)
{
    mercer_matrix left = view_of(row, to), right = view_of(row, from);
    if (row->worker) return row->worker->axpby(row->worker->self, 1, &right, 1, &left);
    if (row->dtype == MERCER_F64)
        for (int64_t i = 0; i < row->elements; i++) ((double *)left.data)[i] += ((const double *)right.data)[i];
    else
        for (int64_t i = 0; i < row->elements; i++) ((float *)left.data)[i] += ((const float *)right.data)[i];
    return MERCER_OK;
}

/* Lists the largest nodes that cover shards first .. end - 1 and returns their number. The field `data` is not set. A
   node may extend beyond the last of all shards, but more than half of its shards exist. */
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

/* Computes sigma(level, index) from the known nodes. Sets *out to the result, which overwrites the data of the first
   known node that it covers. */
static mercer_status sum_node(const tree *self, int level, int index, char **out)
{
    for (int i = 0; i < self->count; i++)
        if (self->nodes[i].level == level && self->nodes[i].index == index) {
            *out = self->nodes[i].data;
            return MERCER_OK;
        }
    *out = self->nodes[0].data;
    if (level <= 0) return MERCER_OK; /* unreachable, because every shard is covered by a known node */
    char *right;
    MRC_TRY(sum_node(self, level - 1, 2 * index, out));
    if ((int64_t)(2 * index + 1) << (level - 1) >= self->all) return MERCER_OK;
    MRC_TRY(sum_node(self, level - 1, 2 * index + 1, &right));
    return add_elements(&self->row, *out, right);
}

/* Returns the level of the root of the tree. */
static int top_level(int all)
{
    int level = 0;
    while ((1 << level) < all) level++;
    return level;
}

/* Adds up the local shards in place. Sets *count to the number of nodes, and nodes[i].data to the data of the node's
   first shard in parts. */
static mercer_status sum_local(mrc_shards shards, const mercer_matrix *parts, const elements_of *row, node *nodes,
                               int *count)
{
    *count = list_nodes(shards.all, shards.first, shards.first + shards.local, nodes);
    for (int i = 0; i < *count; i++) {
        int begin = nodes[i].index << nodes[i].level;
        int end = (int)mrc_min((int64_t)begin + (1 << nodes[i].level), shards.all);
        /* The tree from its leaves up: adds pairs of neighbors, then pairs of pairs, in place. */
        for (int step = 1; step < end - begin; step *= 2)
            for (int s = begin; s + step < end; s += 2 * step)
                MRC_TRY(add_elements(row, parts[s - shards.first].data, parts[s + step - shards.first].data));
        nodes[i].data = parts[begin - shards.first].data;
    }
    return MERCER_OK;
}

/* ---- Sums ----------------------------------------------------------------------------------------------------- */

/* State of one sum. If parts are in device memory and there is no link, nodes and result are copied to host memory and
   the rest of the tree is summed on the host. Host and device round additions in the same way. */
typedef struct sum_job {
    mrc_comm *comm;
    mrc_shards shards;
    const mrc_worker *worker;  /* worker for the memory of the parts; NULL: host memory */
    const mrc_worker *carrier; /* worker for the memory of messages: `worker`, or NULL for host memory */
    mercer_dtype dtype;
    int64_t size, elements; /* size: bytes per element; elements: their number */
    node own[MOST_NODES];
    int own_count;
    bool one_round;
    char *sent, *received, *result; /* sent, received: packed nodes; result: the sum; memory: see carrier */
} sum_job;

/* Lists the nodes that remain on a rank after its local sums; `data` is not set. Every rank computes the same list. */
static int nodes_of(const sum_job *self, int rank, node *out)
{
    int64_t first, local;
    mrc_share(self->shards.all, self->comm->ranks, rank, &first, &local);
    return list_nodes(self->shards.all, (int)first, (int)(first + local), out);
}

/* Finds the range of elements that a rank sums over all ranks' nodes: a slice, or all elements in a sum of one
   round. */
static void slice_of(const sum_job *self, int rank, int64_t *first, int64_t *count)
{
    *first = 0, *count = self->elements;
    if (!self->one_round) mrc_share(self->elements, self->comm->ranks, rank, first, count);
}

/* Copies elements. The workers determine the memory of `to` and of `from` (NULL: host memory). */
static mercer_status move_piece(const sum_job *self, const mrc_worker *to_worker, char *to,
                                const mrc_worker *from_worker, char *from, int64_t elements)
{
    elements_of to_place = {to_worker, self->dtype, elements}, from_place = {from_worker, self->dtype, elements};
    mercer_matrix target = view_of(&to_place, to), source = view_of(&from_place, from);
    if (self->worker) return self->worker->copy(self->worker->self, &target, &source);
    if (from && elements > 0) memcpy(to, from, (size_t)(elements * self->size));
    return MERCER_OK;
}

/* Sets send[r] to the slices of this rank's nodes for rank r. Copies them to one block, unless they are contiguous
   already. */
static mercer_status pack_nodes(sum_job *self, mrc_piece *send)
{
    bool packed = self->own_count == 1 && self->worker == self->carrier;
    int64_t out = 0, first, count;
    for (int r = 0; r < self->comm->ranks; r++) {
        slice_of(self, r, &first, &count);
        int64_t begin = self->one_round ? 0 : out, bytes = count * self->size;
        for (int i = 0; i < self->own_count && !packed && (!self->one_round || r == 0); i++, out += bytes)
            MRC_TRY(move_piece(self, self->carrier, self->sent + out, self->worker,
                               self->own[i].data + first * self->size, count));
        send[r] = packed ? (mrc_piece){self->own[0].data + first * self->size, bytes}
                         : (mrc_piece){self->sent + begin, self->own_count * bytes};
    }
    return MERCER_OK;
}

/* Collects all ranks' nodes for this rank's slice in self->received, in rank order. */
static mercer_status exchange_nodes(sum_job *self)
{
    mrc_comm *comm = self->comm;
    mrc_piece *send = comm->pieces, *receive = comm->pieces + comm->ranks;
    int64_t in = 0, first, mine;
    node nodes[MOST_NODES];
    MRC_TRY(pack_nodes(self, send));
    slice_of(self, comm->rank, &first, &mine);
    for (int r = 0; r < comm->ranks; r++) {
        receive[r] = (mrc_piece){self->received + in, nodes_of(self, r, nodes) * mine * self->size};
        in += receive[r].bytes;
    }
    MRC_TRY(move_piece(self, self->carrier, receive[comm->rank].data, self->carrier, send[comm->rank].data,
                       self->own_count * mine));
    if (self->worker) MRC_TRY(self->worker->sync(self->worker->self));
    return exchange_pieces(comm, memory_of(self->carrier), send, receive);
}

/* Sums the tree over all ranks' nodes for this rank's slice; *sum points to the result in self->received. */
static mercer_status finish_tree(const sum_job *self, int64_t elements, char **sum)
{
    const mrc_comm *comm = self->comm;
    tree all = {.all = self->shards.all, .row = {self->carrier, self->dtype, elements}};
    char *at = self->received;
    node list[MOST_NODES];
    /* Nodes come in rank order. Two siblings are added as soon as both are known, so that the list stays short. */
    for (int r = 0; r < comm->ranks; r++) {
        int count = nodes_of(self, r, list);
        for (int i = 0; i < count; i++, at += elements * self->size) {
            node *last = &all.nodes[all.count++];
            *last = (node){list[i].level, list[i].index, at};
            while (all.count > 1 && last->index % 2 == 1 && last[-1].level == last->level &&
                   last[-1].index == last->index - 1) {
                MRC_TRY(add_elements(&all.row, last[-1].data, last->data));
                last--, all.count--;
                last->level++, last->index /= 2;
            }
        }
    }
    return sum_node(&all, top_level(self->shards.all), 0, sum);
}

/* Exchanges nodes, finishes the tree for this rank's slice, and distributes the result. */
static mercer_status sum_ranks(sum_job *self, char *parts)
{
    mrc_comm *comm = self->comm;
    int64_t first, mine, count;
    char *sum;
    bool direct = self->worker == self->carrier;
    char *result = direct ? parts : self->result;
    slice_of(self, comm->rank, &first, &mine);
    MRC_TRY(exchange_nodes(self));
    MRC_TRY(finish_tree(self, mine, &sum));
    MRC_TRY(move_piece(self, self->carrier, result + first * self->size, self->carrier, sum, mine));
    if (!self->one_round) {
        mrc_piece *slices = comm->pieces + comm->ranks;
        for (int r = 0; r < comm->ranks; r++) {
            slice_of(self, r, &first, &count);
            slices[r] = (mrc_piece){result + first * self->size, count * self->size};
        }
        if (self->carrier) MRC_TRY(self->carrier->sync(self->carrier->self));
        MRC_TRY(mrc_comm_gather(comm, memory_of(self->carrier), slices));
    }
    return direct ? MERCER_OK : move_piece(self, self->worker, parts, self->carrier, result, self->elements);
}

/* Allocates memory for messages (nodes to send, nodes received, and the result if it cannot be formed in place) and
   runs sum_ranks. */
static mercer_status sum_over_ranks(sum_job *self, char *parts)
{
    int64_t nodes = 0, ranks = self->comm->ranks;
    node list[MOST_NODES];
    void *memory;
    MRC_SCOPE(scope, self->comm->context);
    for (int r = 0; r < ranks; r++) nodes += nodes_of(self, r, list);
    self->one_round = self->elements * self->size <= MRC_ONE_ROUND_BYTES;
    /* Upper bounds: mrc_share gives a rank at most elements / ranks + 1 elements. */
    int64_t slice = self->one_round ? self->elements : self->elements / ranks + 1;
    int64_t sent = mrc_round_up(self->own_count * self->elements * self->size, 64);
    int64_t received = mrc_round_up(nodes * slice * self->size, 64);
    const mrc_worker *carrier = self->carrier;
    int64_t bytes = sent + received + self->elements * self->size;
    MRC_TRY(carrier ? carrier->alloc(carrier->self, &memory, bytes, "sums over ranks")
                    : mrc_scope_alloc(&scope, &memory, bytes, 1, "sums over ranks"));
    self->sent = memory;
    self->received = self->sent + sent;
    self->result = self->received + received;
    mercer_status status = sum_ranks(self, parts);
    if (carrier) carrier->free(carrier->self, memory);
    return status;
}

mercer_status mrc_comm_sum(mrc_comm *comm, mrc_shards shards, const mercer_matrix *parts, const mrc_worker *worker)
{
    sum_job job = {.comm = comm,
                   .shards = shards,
                   .worker = worker,
                   .dtype = parts->dtype,
                   .size = mrc_dtype_size(parts->dtype),
                   .elements = parts->rows * parts->cols};
    if (mrc_comm_memory(comm, memory_of(worker)) == memory_of(worker)) job.carrier = worker;
    if (job.elements == 0 || shards.all == 1) return MERCER_OK;
    elements_of whole = {job.worker, job.dtype, job.elements};
    MRC_TRY(sum_local(shards, parts, &whole, job.own, &job.own_count));
    if (comm->ranks == 1) return MERCER_OK; /* a single node remains, whose data is parts[0] */
    return sum_over_ranks(&job, parts->data);
}

mrc_memory mrc_comm_memory(const mrc_comm *comm, mrc_memory memory)
{
    return comm->link || comm->ranks == 1 ? memory : MRC_HOST;
}

/* ---- Other collectives ---------------------------------------------------------------------------------------- */

/* This rank's piece goes to every other rank; it is in place on this rank already. */
mercer_status mrc_comm_gather(mrc_comm *comm, mrc_memory memory, const mrc_piece *all)
{
    if (comm->ranks == 1) return MERCER_OK;
    mrc_piece *send = comm->pieces;
    for (int r = 0; r < comm->ranks; r++) send[r] = all[comm->rank];
    return exchange_pieces(comm, memory, send, all);
}

/* Only rank `from` sends and the others receive; all other pieces are empty. */
mercer_status mrc_comm_spread(mrc_comm *comm, mrc_memory memory, int from, void *data, int64_t bytes)
{
    if (comm->ranks == 1) return MERCER_OK;
    mrc_piece *send = comm->pieces, *receive = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks; r++) {
        send[r] = (mrc_piece){data, comm->rank == from ? bytes : 0};
        receive[r] = (mrc_piece){data, r == from ? bytes : 0};
    }
    return exchange_pieces(comm, memory, send, receive);
}

mercer_status mrc_comm_broadcast(mrc_comm *comm, void *data, int64_t bytes)
{
    return mrc_comm_spread(comm, MRC_HOST, 0, data, bytes);
}

mercer_status mrc_comm_records(mrc_comm *comm, mrc_scope *scope, const void *mine, int64_t bytes, void *out)
{
    char *all;
    MRC_TRY(mrc_scope_alloc(scope, &all, comm->ranks, bytes, "the ranks' answers"));
    memcpy(all + comm->rank * bytes, mine, (size_t)bytes);
    mrc_piece *pieces = comm->pieces + comm->ranks;
    for (int r = 0; r < comm->ranks && comm->ranks > 1; r++) pieces[r] = (mrc_piece){all + r * bytes, bytes};
    MRC_TRY(mrc_comm_gather(comm, MRC_HOST, pieces));
    memcpy(out, &all, sizeof all);
    return MERCER_OK;
}

mercer_status mrc_comm_any(mrc_comm *comm, bool mine, bool *any)
{
    *any = mine;
    if (comm->ranks == 1) return MERCER_OK;
    char flag = mine, *flags;
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, &flag, 1, &flags));
    for (int r = 0; r < comm->ranks; r++) *any = *any || flags[r];
    return MERCER_OK;
}

mercer_status mrc_comm_largest(mrc_comm *comm, double *value)
{
    if (comm->ranks == 1) return MERCER_OK;
    double *all;
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, value, sizeof *value, &all));
    for (int r = 0; r < comm->ranks; r++) *value = fmax(*value, all[r]);
    return MERCER_OK;
}

/* A rank that failed keeps its own status and message, which are more specific. The texts have a fixed size, because
   the records of all ranks must have the same number of bytes; an empty text means success. */
mercer_status mrc_comm_together(mrc_comm *comm, mercer_status status, const char *what)
{
    if (comm->ranks == 1 || comm->broken) return status;
    char text[MRC_ERROR_CHARS / 2] = "", *texts, mine[MRC_ERROR_CHARS];
    snprintf(mine, sizeof mine, "%s", status == MERCER_OK ? "" : mrc_last_error(comm->context));
    if (status != MERCER_OK) snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, mine[0] ? mine : "failed");
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, text, sizeof text, &texts));
    for (int r = 0; r < comm->ranks && status == MERCER_OK; r++)
        if (texts[r * (int64_t)sizeof text])
            return mrc_fail(comm->context, MERCER_ERROR_COMM, "%s: rank %d: %s", what, r,
                            texts + r * (int64_t)sizeof text);
    return status;
}

/* Compares hashes of 128 bits in canonical byte order. The number of bytes is the seed, so it is compared as well. */
mercer_status mrc_comm_agree(mrc_comm *comm, const char *what, const void *data, int64_t bytes)
{
    if (comm->ranks == 1) return MERCER_OK;
    XXH128_canonical_t mine, *all; /* hash of the bytes and their number */
    XXH128_canonicalFromHash(&mine, XXH3_128bits_withSeed(data, (size_t)bytes, (XXH64_hash_t)bytes));
    MRC_SCOPE(scope, comm->context);
    MRC_TRY(mrc_comm_records(comm, &scope, &mine, sizeof mine, &all));
    for (int r = 1; r < comm->ranks; r++)
        if (memcmp(all, &all[r], sizeof mine) != 0)
            return mrc_fail(comm->context, MERCER_ERROR_COMM,
                            "rank %d has %s than rank 0; start all ranks with the "
                            "same command",
                            r, what);
    return MERCER_OK;
}
