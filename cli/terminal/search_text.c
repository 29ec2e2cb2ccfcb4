/* SPDX-License-Identifier: BSD-3-Clause */
/* The hyperparameter search as JSON and as charts of the held-out error: by step, and by number of centers. */
#include "options/options.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <math.h>

enum { SIZES = 3, STAGE = 0, ERROR = 1, EXPONENT = 2, RIDGE = 3 };

static double step_value(const mercer_matrix *steps, int64_t i, int column)
{
    return ((const double *)steps->data)[i * steps->ld + column];
}

static json_t *steps_json(const mercer_matrix *steps)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < steps->rows; i++)
        json_array_append_new(list, json_pack("{si so so so}", "stage", (int)step_value(steps, i, STAGE), "error",
                                              cli_json_real(step_value(steps, i, ERROR)), "exponent",
                                              cli_json_real(step_value(steps, i, EXPONENT)), "ridge",
                                              cli_json_real(step_value(steps, i, RIDGE))));
    return list;
}

static json_t *sizes_json(const mercer_search_report *found)
{
    json_t *list = json_array();
    for (int i = 0; i < SIZES; i++)
        if (found->centers[i] > 0)
            json_array_append_new(list, json_pack("{sI so}", "centers", (json_int_t)found->centers[i], "error",
                                                  cli_json_real(found->center_errors[i])));
    return list;
}

json_t *cli_search_json(const cli_job *job)
{
    const mercer_search_report *found = &job->search;
    return json_pack("{si so so so sI sI sb so so so}", "effort", job->fit.effort, "error", cli_json_real(found->error),
                     "ridge", cli_json_real(found->ridge), "seconds", cli_json_real(found->seconds), "rows",
                     (json_int_t)found->rows, "held", (json_int_t)found->held_out, "cut", found->cut, "sizes",
                     sizes_json(found), "twice_the_centers", cli_json_real(found->more_centers), "steps",
                     steps_json(found->steps));
}

json_t *cli_decisions_json(const mercer_fitting *fitting)
{
    json_t *list = json_array();
    mercer_decision one = MERCER_INIT(mercer_decision);
    int exists = 1;
    for (int i = 0; mercer_fitting_decision(fitting, i, &one, &exists) == MERCER_OK && exists; i++)
        json_array_append_new(list, json_pack("{ss ss ss so ss}", "stage", one.stage, "name", one.name, "origin",
                                              one.origin, "value", cli_json_text(one.value), "text", one.text));
    return list;
}

/* Returns a chart of the smoothed held-out error of each step, one curve per stage. */
static json_t *step_chart(const mercer_matrix *steps)
{
    static const char *const names[] = {"norm 1", "norm 2", "norm 1, larger samples", "norm 2, larger samples"};
    json_t *series = json_array();
    for (int stage = 1; stage <= 4; stage++) {
        json_t *x = json_array(), *y = json_array();
        for (int64_t i = 0; i < steps->rows; i++)
            if ((int)step_value(steps, i, STAGE) == stage) {
                json_array_append_new(x, json_integer(i + 1));
                json_array_append_new(y, cli_json_real(step_value(steps, i, ERROR)));
            }
        if (json_array_size(x) > 0)
            json_array_append_new(series, json_pack("{ss so so}", "name", names[stage - 1], "x", x, "y", y));
        else
            json_decref(x), json_decref(y);
    }
    return json_pack("{ss ss ss sb ss so}", "title", "Held-out error of the search", "x", "step", "y",
                     "squared error over the variance", "log_y", 1, "section", "Search", "series", series);
}

static json_t *size_chart(const mercer_search_report *found)
{
    json_t *x = json_array(), *y = json_array();
    for (int i = 0; i < SIZES; i++) {
        json_array_append_new(x, cli_json_real(log2((double)found->centers[i])));
        json_array_append_new(y, cli_json_real(found->center_errors[i]));
    }
    return json_pack("{ss ss ss sb ss s[{ss so so}]}", "title", "Held-out error by number of centers", "x",
                     "centers, as a power of 2", "y", "squared error over the variance", "log_y", 1, "section",
                     "Search", "series", "name", "small fits", "x", x, "y", y);
}

void cli_log_search(cli_log *log, const cli_job *job)
{
    const mercer_search_report *found = &job->search;
    if (log == NULL || found->steps == NULL) return;
    cli_log_event(log, "search", cli_search_json(job));
    cli_log_event(log, "chart", step_chart(found->steps));
    if (found->centers[0] > 0) cli_log_event(log, "chart", size_chart(found));
}
