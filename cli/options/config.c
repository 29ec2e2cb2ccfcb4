/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: a JSON object whose keys are the long names of options. */
#include "options/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *cli_json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string != NULL) return string;
    CLI_OWNED(cli_drop) char *hex = cli_allocate((int64_t)(2 * strlen(text)) + 1, 1);
    for (size_t i = 0; text[i] != '\0'; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)text[i]);
    return json_pack("{ss}", "hex", hex);
}

/* Decodes the bytes of {"hex": "..."}; NULL if `hex` is not valid. */
static char *hex_text(const char *hex)
{
    size_t length = hex != NULL ? strlen(hex) : 1;
    if (length % 2 != 0 || strspn(hex, "0123456789abcdef") != length) return NULL;
    char *text = cli_allocate((int64_t)(length / 2) + 1, 1);
    for (size_t i = 0; i < length / 2; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        text[i] = (char)strtol(digits, NULL, 16);
    }
    return text;
}

/* Returns a JSON value in the form of a command line value. Returns NULL for values without such a form, such as
   arrays. */
static char *value_text(const json_t *value)
{
    if (json_is_string(value)) return cli_copy(json_string_value(value));
    if (json_is_integer(value)) return cli_format("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) return cli_format("%.17g", json_real_value(value));
    if (json_is_boolean(value)) return cli_copy(json_is_true(value) ? "true" : "false");
    if (json_is_object(value)) return hex_text(json_string_value(json_object_get(value, "hex")));
    return NULL;
}

/* Returns ["a", "b"] as "a,b", for lists; NULL if an element has no command line form. */
static char *list_text(const json_t *array)
{
    char *whole = NULL;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);
        CLI_OWNED(cli_drop)
        char *text = json_is_string(element) || json_is_integer(element) ? value_text(element) : NULL;
        if (text == NULL) {
            free(whole);
            return NULL;
        }
        whole = cli_append(whole, "%s%s", whole != NULL ? "," : "", text);
    }
    return whole;
}

/* Returns the value of --metric with a relative path resolved against the folder of the configuration file. If the file
   exists only in the current folder, that file is used, as in version 0.2. Release with free. */
static char *metric_sibling(const char *text, int prefix, const char *config)
{
    const char *path = text + prefix, *slash = strrchr(config, '/');
    if (slash == NULL || path[0] == '/') return cli_copy(text);
    CLI_OWNED(cli_drop) char *sibling = cli_format("%.*s/%s", (int)(slash - config), config, path);
    if (access(sibling, F_OK) == 0 || access(path, F_OK) != 0) return cli_format("%.*s%s", prefix, text, sibling);
    cli_warn("%s: metric: %s does not exist; using %s of the current folder", config, sibling, path);
    return cli_copy(text);
}

/* Sets an option from a JSON value. Switches also accept true, false and numbers (0 is off), as learn-features did in
   version 0.2. */
static int set_from_json(cli_values *v, const cli_option *option, const json_t *value, const char *config,
                         const char *where, cli_origin origin)
{
    if (json_is_null(value)) return CLI_OK;
    int list = option->type == CLI_LIST && json_is_array(value);
    CLI_OWNED(cli_drop) char *text = list ? list_text(value) : value_text(value);
    if (text == NULL) return cli_error(CLI_USAGE, "%s: must be a string, a number, true or false", where);
    int prefix = strcmp(option->name, "metric") == 0 ? cli_path_in(option, text) : 0;
    CLI_OWNED(cli_drop) char *resolved = prefix > 0 ? metric_sibling(text, prefix, config) : NULL;
    const char *used = resolved != NULL ? resolved : text;
    if (option->type == CLI_SWITCH && json_is_boolean(value)) used = json_is_true(value) ? "on" : "off";
    if (option->type == CLI_SWITCH && json_is_integer(value)) used = json_integer_value(value) != 0 ? "on" : "off";
    return cli_values_set(v, option, used, origin, where);
}

int cli_take_config(cli_values *v, const json_t *object, const char *from, cli_origin origin)
{
    const cli_command *command = cli_values_command(v);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)object, key, value)
    {
        if (key[0] == '_') continue; /* a comment, such as "_note": "..." */
        const cli_option *option = cli_find_option(command, key);
        if (option == NULL || strcmp(option->name, "config") == 0 || strcmp(option->name, "print-config") == 0) {
            const char *meant = option == NULL ? cli_suggest_option(command, key) : NULL;
            if (meant != NULL)
                return cli_error(CLI_USAGE, "%s: %s has no option '%s'; did you mean '%s'?", from, command->name, key,
                                 meant);
            return cli_error(CLI_USAGE, "%s: '%s' is not an option of %s; see mercer %s --help", from, key,
                             command->name, command->name);
        }
        CLI_OWNED(cli_drop) char *where = cli_format("%s: %s", from, key);
        CLI_TRY(set_from_json(v, option, value, from, where, origin));
    }
    return CLI_OK;
}

int cli_read_config(cli_values *v, const char *path)
{
    json_error_t error;
    char *text;
    size_t length;
    CLI_TRY(cli_read_file(path, &text, &length, NULL));
    json_auto_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (object == NULL)
        return cli_error(CLI_USAGE, "%s: line %d: %s; a configuration must be a JSON object", path, error.line,
                         error.text);
    if (!json_is_object(object))
        return cli_error(CLI_USAGE, "%s: is not a JSON object; write {\"option\": value, ...}", path);
    return cli_take_config(v, object, path, CLI_FROM_CONFIG);
}

/* Returns whether an option belongs in a configuration. Excludes default values of options that have another effect
   when given explicitly: for example, an explicit --kernel restricts the search, and an explicit --validation-fraction
   0 turns calibration off. */
static int is_configurable(const cli_values *v, const cli_option *option)
{
    int unless_default = strcmp(option->name, "kernel") == 0 || strcmp(option->name, "effort") == 0 ||
                         strcmp(option->name, "validation-fraction") == 0 || strcmp(option->name, "output") == 0;
    if (unless_default && cli_values_origin(v, option) == CLI_FROM_DEFAULT) return 0;
    return strcmp(option->name, "help") != 0 && strcmp(option->name, "config") != 0 &&
           strcmp(option->name, "print-config") != 0;
}

/* Returns an option value as a JSON number if this loses no digits, otherwise as a JSON string. */
static json_t *option_json(const cli_option *option, const char *text)
{
    int64_t integer = 0;
    double number = 0;
    if (option->type == CLI_FLAG) return json_boolean(strcmp(text, "true") == 0);
    if (option->type == CLI_INTEGER && cli_read_integer(text, &integer) == 0) return json_integer(integer);
    if (option->type == CLI_NUMBER && cli_read_number(text, &number) == 0) return json_real(number);
    return cli_json_text(text);
}

json_t *cli_config_object(const cli_values *v)
{
    json_t *object = json_object();
    for (const cli_option *option = NULL; (option = cli_next_option(cli_values_command(v), NULL, option)) != NULL;) {
        const char *text = cli_values_get(v, option);
        if (text == NULL || !is_configurable(v, option)) continue;
        json_object_set_new(object, option->name, option_json(option, text));
    }
    return object;
}

int cli_print_config(const cli_values *v)
{
    static const char *const origins[] = {"default", "config", "environment", "command line"};
    json_t *object = cli_config_object(v);
    json_t *sources = json_object();
    for (const cli_option *option = NULL; (option = cli_next_option(cli_values_command(v), NULL, option)) != NULL;) {
        if (json_object_get(object, option->name) == NULL) continue;
        json_object_set_new(sources, option->name, json_string(origins[cli_values_origin(v, option)]));
    }
    json_object_set_new(object, "_sources", sources);
    return cli_print_json(object);
}
