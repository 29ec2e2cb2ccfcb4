/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of a run that can be resumed: config.json, the options and the fingerprints of the data, written before
 * anything long begins; checkpoint.safetensors, the state of training, as soon as there is one.
 */
#ifndef MERCER_CLI_FOLDER_H
#define MERCER_CLI_FOLDER_H

#include "cli.h"

typedef struct cli_folder {
    char *path, *config, *checkpoint;
    uint64_t fingerprints[2]; /* of training and validation data; 0: none */
    int finished;
    int replaces;    /* another run, which is not finished, has the folder until this one begins */
    json_t *options; /* read from config.json; NULL before */
    int lock;        /* descriptor of the file that keeps other runs out and names this one; -1: none */
    json_t *files;   /* size and time of each file that is read, by its name (cli_input_states) */
} cli_folder;

/* Names only. */
cli_folder *cli_folder_new(const char *path);
void cli_drop_folder(cli_folder **folder);
/* Keeps other runs out of the folder, which exists, until it is released or the program ends, however that happens;
   then what a run that was killed left half-written is removed. Refused if another run is there. Where file systems
   have no locks, nothing is done. Exit code. */
int cli_folder_take(cli_folder *folder);
/* Makes and takes the folder for a new run; refuses one with an unfinished run, unless `force`. What the folder holds
   stays as it is. Exit code. */
int cli_folder_create(cli_folder *folder, int force);
/* The new run takes the folder: the checkpoint of the old one goes, config.json is written. Exit code. */
int cli_folder_begin(cli_folder *folder, const cli_values *v);
/* Writes config.json, atomically, with paths made absolute. Exit code. */
int cli_folder_write(const cli_folder *folder, const cli_values *v);
/* Reads config.json. Exit code. */
int cli_folder_read(cli_folder *folder);
int cli_folder_has_checkpoint(const cli_folder *folder);

#endif
