/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mercer report: writes the log of a run as one HTML file that needs only a browser: styles and drawings are inline,
 * with no scripts and no network access. Everything that comes from the log is escaped; in addition, the page's content
 * security policy forbids scripts and requests.
 */
#include "report/report.h"
#include "commands/commands.h"

#include "cli.h"

#include <errno.h>
#include <string.h>

void report_open(report_page *self, const char *id, const char *title, const char *lead, const char *class)
{
    page_print(&self->links, "<li><a href=\"#%s\">%s</a></li>", id, title);
    page_print(&self->body, "<section id=\"%s\" aria-labelledby=\"%s-title\"><h2 id=\"%s-title\">%s</h2>\n", id, id, id,
               title);
    for (; lead && *lead; lead = strchr(lead, '\n') ? strchr(lead, '\n') + 1 : "") {
        page_add(&self->body, "<p class=\"lead\">");
        page_escape_part(&self->body, lead, strcspn(lead, "\n"));
        page_add(&self->body, "</p>\n");
    }
    self->sections++;
    self->boxed = class != NULL;
    if (class) page_print(&self->body, "<div class=\"%s\">\n", class);
}

void report_close(report_page *self)
{
    page_add(&self->body, self->boxed ? "</div>\n</section>\n" : "</section>\n");
}

static void write_sections(report_page *self, const report_run *run)
{
    report_headline(self, run);
    report_extras(self, run);
    report_predictions(self, run);
    report_curves(self, run);
    report_confusion(self, run);
    report_quality(self, run);
    report_plan(self, run);
    report_spectrum(self, run);
    report_residuals(self, run);
    report_phases(self, run);
    report_timeline(self, run);
    report_options(self, run);
}

static void write_page(page *out, const report_page *parts, const report_run *run)
{
    const char *title = report_text(run->start, "title");
    page_add(out,
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
             "img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    page_escape(out, title ? title : "Training report");
    page_add(out, " – Mercer</title>\n<style>\n");
    for (const char *const *piece = report_style; *piece; piece++) page_add(out, *piece);
    page_add(out, "</style></head><body>\n");
    page_add(out, parts->header.text);
    if (parts->sections > 1) {
        page_add(out, "<nav aria-label=\"Sections\"><ul>");
        page_add(out, parts->links.text);
        page_add(out, "</ul></nav>\n");
    }
    page_add(out, "</header>\n<main>\n");
    if (parts->body.text) page_add(out, parts->body.text);
    page_print(out, "</main>\n<footer>Made by mercer report %s. This page contains everything it shows.</footer>\n",
               mercer_version());
    page_add(out, "</body></html>\n");
}

/* Writes the text to `path` completely or not at all. Returns an exit code. */
static int save_page(const page *text, const char *path)
{
    cli_output *output = NULL;
    CLI_TRY(cli_output_open(&output, path));
    if (fwrite(text->text, 1, text->used, cli_output_file(output)) != text->used) {
        int error = errno;
        cli_output_drop(output);
        return cli_error(CLI_IO, "%s: cannot write: %s", path, strerror(error));
    }
    return cli_output_close(output);
}

int report_write(const char *log_path, const char *html_path)
{
    CLI_OWNED(report_free) report_run run = {0};
    CLI_OWNED(page_free) page whole = {0};
    report_page parts = {0};
    CLI_TRY(report_read(&run, log_path));
    write_sections(&parts, &run);
    write_page(&whole, &parts, &run);
    page_free(&parts.header), page_free(&parts.body), page_free(&parts.links);
    return save_page(&whole, html_path);
}

int cli_report(const cli_values *v)
{
    return report_write(cli_positional(v, 0), cli_text(v, "output"));
}
