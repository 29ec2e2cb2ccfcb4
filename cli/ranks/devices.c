/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses --device: one device, or a list of devices with one rank each.
 *
 *   cpu  reference  auto    as mercer_context_create accepts them
 *   cuda                    the first GPU; for a process of a launcher, the GPU with the index of its local rank
 *   cuda:N                  GPU N
 *   cuda:all                all GPUs, one rank each
 *   A,B,...                 one rank each; a device may be repeated
 */
#include "options/options.h"
#include "ranks/program_ranks.h"

#include <stdlib.h>
#include <string.h>

/* Returns the local rank of this process: its index among the processes of the launcher on the same machine; -1 if
   unknown. */
static int local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text != NULL && *text != '\0' && strspn(text, "0123456789") == strlen(text)) return atoi(text);
    }
    return -1;
}

static int is_numbered(const char *name)
{
    return strncmp(name, "cuda:", 5) == 0 && name[5] != '\0' && strspn(name + 5, "0123456789") == strlen(name + 5);
}

static void add_device(cli_devices *devices, char *name)
{
    int64_t capacity = devices->count;
    devices->names = cli_grow(devices->names, capacity, &capacity, sizeof *devices->names);
    devices->names[devices->count++] = name;
}

/* Parses one entry of the list. */
static int read_device(const char *name, int launched, cli_devices *devices)
{
    int graphics = strncmp(name, "cuda", 4) == 0, count = graphics ? mercer_device_count("cuda") : 0;
    if (strcmp(name, "cuda:all") == 0) {
        if (count == 0)
            return cli_error(CLI_FAILURE, "--device: cuda:all: no GPU was found, or this build has no "
                                          "GPU support; use --device cpu");
        for (int i = 0; i < count; i++) add_device(devices, cli_format("cuda:%d", i));
        return CLI_OK;
    }
    if (!is_numbered(name) && !cli_has_word("cpu|cuda|auto|reference", name))
        return cli_error(CLI_USAGE, "--device: '%s' is not one of cpu, cuda, cuda:N, cuda:all, auto, reference", name);
    int free_choice = strcmp(name, "cuda") == 0 || strcmp(name, "auto") == 0;
    if (strcmp(name, "auto") == 0) count = mercer_device_count("cuda");
    if (free_choice && launched && local_rank() >= 0 && count > 0)
        add_device(devices, cli_format("cuda:%d", local_rank() % count));
    else
        add_device(devices, cli_copy(name));
    return CLI_OK;
}

/* Checks that all devices are of one kind, because different kinds round differently. */
static int check_list(const cli_devices *devices)
{
    for (int i = 0; i < devices->count; i++) {
        size_t kind = strcspn(devices->names[0], ":");
        if (strcmp(devices->names[i], "auto") == 0)
            return cli_error(CLI_USAGE, "--device: auto cannot be part of a list; name the devices");
        if (strcspn(devices->names[i], ":") != kind || strncmp(devices->names[i], devices->names[0], kind) != 0)
            return cli_error(CLI_USAGE, "--device: %s and %s are of different kinds; use a list of one kind",
                             devices->names[0], devices->names[i]);
    }
    return CLI_OK;
}

int cli_devices_read(const cli_values *v, cli_devices *out)
{
    CLI_OWNED(cli_drop) char *text = cli_copy(cli_text(v, "device"));
    /* Even with --comm self, the processes of a launcher share the GPUs of the machine. */
    int launched = mercer_comm_launched(NULL) > 0;
    *out = (cli_devices){.list = strchr(text, ',') != NULL || strcmp(text, "cuda:all") == 0};
    for (char *at = text; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL) *comma = '\0';
        CLI_TRY(read_device(at, launched && !out->list, out));
        at = comma != NULL ? comma + 1 : NULL;
    }
    return out->list ? check_list(out) : CLI_OK;
}

int cli_names_gpu(const cli_values *v)
{
    const char *device = cli_text(v, "device");
    return strncmp(device, "cuda", 4) == 0 || (strcmp(device, "auto") == 0 && mercer_device_count("cuda") > 0);
}

void cli_devices_free(cli_devices *devices)
{
    for (int i = 0; i < devices->count; i++) free(devices->names[i]);
    free(devices->names);
    *devices = (cli_devices){0};
}
