/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of a resumable run. config.json contains the options and the fingerprints of the data; it is written
 * before any long computation. checkpoint.safetensors contains the state of training; it exists after the first
 * checkpoint.
 */
#ifndef MERCER_CLI_FOLDER_H
#define MERCER_CLI_FOLDER_H

#include "cli.h"

typedef struct cli_folder {
    char *path, *config, *checkpoint;
    uint64_t fingerprints[2]; /* fingerprints of training and validation data; 0: none */
    int finished;
    int replaces;    /* true while the folder still belongs to an unfinished run that this run will replace */
    json_t *options; /* options read from config.json; NULL until cli_folder_read */
    int lock;        /* descriptor of the lock file; -1: not locked */
    json_t *files;   /* size and modification time of each input file, keyed by option and name (cli_input_states) */
} cli_folder;

/* Creates a cli_folder and fills in its file names; does not access any file. */
cli_folder *cli_folder_new(const char *path);
void cli_drop_folder(cli_folder **folder);
/* Locks an existing folder until it is released or the program ends for any reason, then removes the partial files of a
   killed run. Fails if another run holds the lock. Does nothing on file systems without locks. Returns an exit code. */
int cli_folder_take(cli_folder *folder);
/* Creates and locks the folder for a new run; fails if it contains an unfinished run, unless `force`. Existing
   contents are not changed. Returns an exit code. */
int cli_folder_create(cli_folder *folder, int force);
/* Starts the new run: deletes the checkpoint of the old run and writes config.json. Returns an exit code. */
int cli_folder_begin(cli_folder *folder, const cli_values *v);
/* Writes config.json atomically, with paths made absolute. Returns an exit code. */
int cli_folder_write(const cli_folder *folder, const cli_values *v);
/* Reads config.json. Returns an exit code. */
int cli_folder_read(cli_folder *folder);
int cli_folder_has_checkpoint(const cli_folder *folder);

#endif
