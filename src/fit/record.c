/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a fit: its decisions, and the text that is made from them (lines of the plan, the report, the model's
   note). */
#include "fit/fitting.h"

#include "core/matrix.h"
#include "model/model.h"
#include "plan/plan.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Decisions --------------------------------------------------------------------------------------------------- */

/* Returns the decision of a stage with that name, or NULL. A stage that runs again replaces its decisions. */
static mrc_decision *find_decision(mrc_fit_record *record, const char *stage, const char *name)
{
    for (int i = 0; i < record->decision_count; i++) {
        mrc_decision *one = &record->decisions[i];
        if (strcmp(one->stage, stage) == 0 && strcmp(one->name, name) == 0) return one;
    }
    return NULL;
}

void mrc_fit_decide(mercer_fitting *self, const char *stage, const char *name, mrc_origin origin, const char *format,
                    ...)
{
    mrc_fit_record *record = &self->record;
    mrc_decision *one = find_decision(record, stage, name);
    if (!one && record->decision_count == MRC_DECISIONS) {
        mrc_log(self->context, MERCER_LOG_ERROR, "the record of the fit is full; %s %s is not recorded", stage, name);
        return;
    }
    if (!one) one = &record->decisions[record->decision_count++];
    *one = (mrc_decision){.stage = stage, .name = name, .origin = origin};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(one->value, sizeof one->value, format, arguments);
    va_end(arguments);
}

void mrc_fit_explain(mercer_fitting *self, const char *stage, const char *name, const char *format, ...)
{
    mrc_decision *one = find_decision(&self->record, stage, name);
    if (!one) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(one->text, sizeof one->text, format, arguments);
    va_end(arguments);
}

mrc_origin mrc_fit_origin(const mercer_fitting *self, bool given, mrc_origin otherwise)
{
    if (self->model_borrowed) return MRC_GIVEN;
    if (self->model_exists) return MRC_RESUMED;
    return given ? MRC_GIVEN : otherwise;
}

const char *mrc_origin_name(mrc_origin origin)
{
    static const char *const names[] = {"default", "given", "data", "search", "resumed", "budget"};
    return names[origin];
}

/* The text of the plan is copied first, because the lines are written to the beginning of the same buffer. */
void mrc_fit_add_lines(const mercer_fitting *self, mercer_plan *plan)
{
    char text[MERCER_PLAN_TEXT];
    memcpy(text, plan->text, sizeof text);
    plan->text[0] = 0;
    for (int i = 0; i < self->record.decision_count; i++) {
        const mrc_decision *one = &self->record.decisions[i];
        if (one->text[0]) mrc_plan_say(plan, "%s: %s\n", one->stage, one->text);
    }
    mrc_plan_say(plan, "%s", text);
}

void mrc_fit_start_record(mercer_fitting *self)
{
    const mrc_fit_request *request = self->request;
    self->record.centers = request->options.centers.count;
    self->record.ridge = fmax(request->train.lambda, 0);
    self->record.converge = request->train.converge;
    self->report.temperature = self->report.curvature = (double)NAN;
}

/* ---- Note and report --------------------------------------------------------------------------------------------- */

static json_t *real_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

#define PROGRAM "mercer train" /* readers recognize notes of fits by this value of "program" */

/* The note may be any text. A text that is not JSON, or JSON of another program, is not an error. */
bool mrc_fit_read_note(const mercer_model *model, double *ridge, double *weight)
{
    json_auto_t *note = model->note ? json_loads(model->note, 0, NULL) : NULL;
    const char *program = json_string_value(json_object_get(note, "program"));
    *ridge = json_number_value(json_object_get(note, "ridge"));
    *weight = json_number_value(json_object_get(note, "weight"));
    return program && strcmp(program, PROGRAM) == 0 && *ridge > 0 && *weight > 0;
}

/* Returns a summary for the model file, as JSON. It contains neither times nor names of files, so that fits with the
   same result write identical files. Readers recognize it by the program's name. */
static char *training_note(const mercer_fitting *self)
{
    const mercer_report *report = &self->training;
    const char *method = self->options->centers.given ? "file" : mrc_fit_center_method(self);
    json_auto_t *note =
        json_pack("{ss ss ss sI sI sI sI sI so so ss}", "program", PROGRAM, "solver", report->plan->solver, "projector",
                  report->plan->projector, "rows", (json_int_t)self->info.rows, "epochs", (json_int_t)report->epochs,
                  "samples", (json_int_t)report->samples, "batch", (json_int_t)report->plan->batch, "seed",
                  (json_int_t)self->options->run.seed, "train_loss", real_number(report->train_loss), "validation_loss",
                  real_number(report->validation_loss), "center_method", method);
    if (self->info.task == MERCER_TASK_CLASSIFICATION) {
        json_object_set_new(note, "train_accuracy", real_number(report->train_accuracy));
        json_object_set_new(note, "validation_accuracy", real_number(report->validation_accuracy));
    }
    json_object_set_new(note, "ridge", real_number(report->plan->lambda));
    json_object_set_new(note, "weight", real_number(mrc_fit_count_samples(self->data)));
    if (self->options->data.augment) json_object_set_new(note, "augment", json_string(self->options->data.augment));
    /* all digits, because a later fit reads the ridge from it */
    return json_dumps(note, JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
}

mercer_status mrc_fit_write_note(const mercer_fitting *self)
{
    char *note = training_note(self);
    mercer_status status = note ? mrc_model_set_note(self->model, note)
                                : mrc_fail(self->context, MERCER_ERROR_MEMORY, "out of memory for the model's note");
    free(note);
    return status;
}

/* Also used before the end of a fit: values of stages that have not run are those of the request, or 0. */
void mrc_fitting_fill(const mercer_fitting *self, mercer_fit_report *report)
{
    *report = self->report;
    report->struct_size = sizeof *report;
    report->effort = self->record.effort;
    report->rows = self->info.rows;
    report->validation_rows = self->validation ? self->validation->rows : 0;
    report->samples = self->source.rows > 0 ? self->source.rows : self->info.rows;
    snprintf(report->preprocess, sizeof report->preprocess, "%s",
             self->applied || self->model ? mrc_preprocess_spec(self->applied)
                                          : mrc_fit_preprocess(self->options, &self->info));
}
