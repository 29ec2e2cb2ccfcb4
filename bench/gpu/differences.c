/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times products K(X, Z) W of laplace-l1 on any backend; prints one line of JSON per shape.
 *
 *   differences [--backend NAME] [--arithmetic NAME] [--rows N]
 *
 * "floor" is the shortest possible time on an H200: 2 operations per pair and feature at 60e12 per second (for bytes,
 * four features at a time), and one exponential per pair at 132 x 16 per clock cycle, at 1.98 GHz.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(mercer_context *context, mercer_status status)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "differences: %s: %s\n", mercer_status_string(status), mercer_last_error(context));
    exit(1);
}

static void measure(mercer_context *context, const char *arithmetic, int64_t n, int64_t d, int64_t c,
                    mercer_dtype points)
{
    mercer_shape shape = MERCER_INIT(mercer_shape);
    mercer_speed speed = MERCER_INIT(mercer_speed);
    mercer_kernel kernel;
    char text[64];
    bool bytes = points == MERCER_U8;
    shape.samples = shape.centers = n, shape.features = d, shape.outputs = c, shape.points = points;
    snprintf(text, sizeof text, "laplace-l1:bandwidth=%g", (double)d * (bytes ? 42 : 0.33));
    must(context, mercer_kernel_parse(&kernel, context, text));
    must(context, mercer_measure_speed(context, &speed, &kernel, &shape));
    double pairs = (double)n * (double)n, operations = 2 * pairs * (double)d;
    double floor = operations / (bytes ? 4 : 1) / 60e12 + pairs / (132 * 16 * 1.98e9);
    printf("{\"bench\": \"differences\", \"arithmetic\": \"%s\", \"type\": \"%s\", \"n\": %" PRId64 ", \"d\": %" PRId64
           ", \"c\": %" PRId64 ", \"ms\": %.3f, \"median_ms\": %.3f, \"toperations\": %.1f, \"of_floor\": %.2f}\n",
           arithmetic, bytes ? "u8" : "f32", n, d, c, 1e3 * speed.product, 1e3 * speed.median,
           1e-12 * operations / speed.product, floor / speed.product);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const int64_t outputs[] = {1, 10, 16, 32, 64, 100, 128, 1000};
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    mercer_context *context;
    int64_t rows = 65536;
    options.backend = "cuda", options.arithmetic = "accurate";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--backend") == 0) options.backend = argv[i + 1];
        if (strcmp(argv[i], "--arithmetic") == 0) options.arithmetic = argv[i + 1];
        if (strcmp(argv[i], "--rows") == 0) rows = strtoll(argv[i + 1], NULL, 10);
    }
    must(NULL, mercer_context_create(&context, &options));
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        measure(context, options.arithmetic, rows, 32, outputs[i], MERCER_F32);
    for (int64_t d = 8; d <= 512; d *= 4) measure(context, options.arithmetic, rows, d, 10, MERCER_F32);
    for (int64_t d = 32; d <= 512; d *= 4) measure(context, options.arithmetic, rows, d, 10, MERCER_U8);
    mercer_context_free(context);
    return 0;
}
