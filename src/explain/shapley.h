/* SPDX-License-Identifier: BSD-3-Clause */
/* Exact Shapley values of a model's outputs: shapley.c has the definition and the method. */
#ifndef MRC_EXPLAIN_SHAPLEY_H
#define MRC_EXPLAIN_SHAPLEY_H

#include "explain/mixture.h"
#include "model/model.h"

#include "mercer/evaluation.h"

/* A single model, or one of the models that a mean consists of, prepared for Shapley values. */
typedef struct mrc_shap_member {
    mercer_model *model; /* borrowed */
    mrc_mixture mixture;
    double power;             /* p of the sums that the kernel is a function of */
    int64_t *owner;           /* (width) column that each feature of the centers belongs to */
    mercer_matrix background; /* (rows, width) f64 preprocessed background */
} mrc_shap_member;

/* Rule of Gauss and Legendre on [0, 1]; nodes and weights (count). */
typedef struct mrc_gauss_rule {
    int64_t count;
    const double *nodes, *weights;
} mrc_gauss_rule;

enum { MRC_GAUSS_RULES = 48 };

struct mercer_shap {
    mercer_context *context;
    mrc_scope scope; /* owns the memory of all parts below */
    mrc_shap_member members[MERCER_MEMBERS];
    int64_t member_count;
    int64_t features, columns, outputs;
    int64_t rows;                          /* number of background rows */
    bool from_centers;                     /* the background rows are centers of the model */
    const char *const *names;              /* (columns) names of the columns; NULL: unknown */
    double *base;                          /* (outputs) mean output over the background */
    double error;                          /* bound of the error of a value, in the units of the outputs */
    int64_t terms;                         /* largest number of terms of a mixture */
    mrc_gauss_rule rules[MRC_GAUSS_RULES]; /* ascending counts; the last one is exact */
    int64_t rule_count;
};

/* Prepares the Shapley values of a model for a background (rows, features); NULL: up to `rows` centers of the model.
   The caller has checked type and size of the background. The model must outlive the result. */
mercer_status mrc_shap_create(mercer_shap **out, mercer_model *model, const mercer_matrix *background, int64_t rows);
/* Computes the values (m, outputs columns), f32 or f64, at the rows of X, whose sizes have been checked. */
mercer_status mrc_shap_values(mercer_shap *shap, const mercer_matrix *values, const mercer_matrix *X);
/* Computes interactions (m, outputs columns columns): half of I_kl (game.c) for k != l; for k = l the value of column k
   minus its other interactions. */
mercer_status mrc_shap_interactions(mercer_shap *shap, const mercer_matrix *values, const mercer_matrix *X);
void mrc_shap_free(mercer_shap *shap);
MRC_RELEASE(mrc_release_shap, mercer_shap, mrc_shap_free)

/* game.c: adds share * scale_c times the values of a member at rows of preprocessed points (m, width) f64 to values
   (m, outputs columns) f64; with `pairs` the interactions I_kl of columns k < l to (m, outputs columns columns). scale
   (outputs); NULL: all 1. */
mercer_status mrc_game_add(const mercer_shap *shap, const mrc_shap_member *member, const mercer_matrix *points,
                           double share, const double *scale, bool pairs, const mercer_matrix *values);

/* game.c: makes the quadrature rules for shap->columns columns; shap->scope owns them. */
mercer_status mrc_gauss_rules(mercer_shap *shap);

#endif
