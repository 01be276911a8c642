/* SPDX-License-Identifier: Apache-2.0
 * clattn bench: how fast the engines are on a device, compared with the unfused baseline and with the device's peak rates. */
#define CLATTN_EXPERIMENTAL
#include "bench_report.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What people run. On a CPU in fp32, and where a call would take seconds, with fewer heads or shorter. */
static const struct {
    const char *name, *gpu, *cpu;
} default_set[] = {
    {"SD self-attention, 64x64", "h8 q4096 d40 fp16", "h8 q4096 d40"},
    {"SD cross-attention, 64x64", "h8 q4096 k77 d40 fp16", "h8 q4096 k77 d40"},
    {"SD self-attention, 32x32", "h8 q1024 d80 fp16", "h8 q1024 d80"},
    {"SD self-attention, 16x16", "h8 q256 d160 fp16", "h8 q256 d160"},
    {"SDXL self-attention", "h10 q4096 d64 fp16", "h10 q4096 d64"},
    {"SDXL cross-attention", "h10 q4096 k77 d64 fp16", "h10 q4096 k77 d64"},
    {"VAE", "h1 q4096 d512 fp16", "h1 q4096 d512"},
    {"Flux", "h24 q4608 d128 fp16", "h2 q4608 d128"},
    {"Whisper encoder", "h8 q1500 d64 fp16", "h8 q1500 d64"},
    {"Whisper decoder, 1 token", "h8 q1 k1500 d64 fp16", "h8 q1 k1500 d64"},
    {"Whisper decoder, 5 beams", "h8 q5 k1500 d64 fp16", "h8 q5 k1500 d64"},
    {"LLM prefill", "hq32 hkv8 q4096 d128 fp16 causal", "hq8 hkv2 q2048 d128 causal"},
    {"LLM decode", "hq32 hkv8 q1 k8192 d128 fp16", "hq32 hkv8 q1 k4096 d128"},
};

enum { DEFAULT_SET = sizeof default_set / sizeof default_set[0] };

struct options {
    const char *device, *json, *plot;
    struct cli_list shapes, engines;
    double warmup_ms, min_ms;
    int64_t flush;
    bool no_peak;
};

/* The requested files. */
struct files {
    struct output json, plot;
};

struct progress {
    const struct bench_entry *entry;
    size_t number, count;
};

static void show_progress(void *user, const char *engine, const char *what)
{
    const struct progress *p = user;
    cli_progress("[%zu of %zu] %s: %.12s, %s", p->number, p->count, p->entry->shape, engine, what);
}

/* --------------------------------------------------------------------------------------------------------------- before */

static bool is_cpu(const struct session *session)
{
    cl_device_type type = 0;
    (void)clGetDeviceInfo(clattn_context_device(session->context), CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return (type & CL_DEVICE_TYPE_CPU) != 0;
}

/* The user's shapes, or the default set. */
static int choose_shapes(const struct options *o, const struct session *session, struct bench_report *report)
{
    report->count = o->shapes.count > 0 ? o->shapes.count : DEFAULT_SET;
    report->entries = calloc(report->count, sizeof *report->entries);
    if (report->entries == NULL)
        return cli_fail("bench", CLI_FAILED, NULL, "out of memory");
    for (size_t i = 0; i < report->count; i++) {
        struct bench_entry *entry = &report->entries[i];
        entry->name = o->shapes.count > 0 ? NULL : default_set[i].name;
        entry->shape = o->shapes.count > 0 ? o->shapes.items[i] : is_cpu(session) ? default_set[i].cpu : default_set[i].gpu;
    }
    return CLI_OK;
}

static int read_shape(const char *text, struct trial *trial)
{
    clattn_error error;
    clattn_error_init(&error);
    if (trial_parse(text, trial, &error) != CLATTN_SUCCESS)
        return cli_fail("bench", CLI_USAGE, "--shape", "%s", error.message);
    if (!session_problem_is_valid(&trial->problem, &error))
        return cli_fail("bench", CLI_USAGE, "--shape", "%s", error.message);
    if (trial->override[0] != '\0')
        return cli_fail("bench", CLI_USAGE, "--shape",
                        "override= is for checks; set CLATTN_DEVICE_OVERRIDE to measure with it");
    if (trial->batch == 0 || trial->problem.heads_q == 0 || trial->seq_q == 0)
        return cli_fail("bench", CLI_USAGE, "--shape", "%s: there is nothing to compute, hence no time to measure", text);
    return CLI_OK;
}

/* The name for the library's choice. */
static const char choice[] = "auto";

/* Before a device is touched. */
static int refuse(const struct options *o)
{
    struct trial trial;
    int code = session_refuse_engines("bench", &o->engines, choice);
    if (code == CLI_OK && o->engines.count > BENCH_MAX_ENGINES)
        code = cli_fail("bench", CLI_USAGE, "--engine", "given more than %d times", BENCH_MAX_ENGINES);
    for (size_t i = 0; i < o->shapes.count && code == CLI_OK; i++)
        code = read_shape(o->shapes.items[i], &trial);
    if (code == CLI_OK && !(o->warmup_ms >= 0 && o->warmup_ms <= 1e6))
        code = cli_fail("bench", CLI_USAGE, "--warmup-ms", "must be from 0 to 1000000");
    if (code == CLI_OK && !(o->min_ms > 0 && o->min_ms <= 1e6))
        code = cli_fail("bench", CLI_USAGE, "--min-ms", "must be more than 0 and at most 1000000");
    if (code == CLI_OK && o->flush != 0 && (o->flush < 4 || o->flush > (int64_t)1 << 40))
        code = cli_fail("bench", CLI_USAGE, "--flush", "must be a number of bytes from 4 up, or 0");
    return code;
}

/* ------------------------------------------------------------------------------------------------------------- measuring */

static int measure_entry(struct bench *bench, const struct options *o, struct bench_entry *entry)
{
    const char *names[BENCH_MAX_ENGINES] = {NULL, "unfused"};
    const size_t named = o->engines.count;
    struct trial trial;
    int code = read_shape(entry->shape, &trial);
    if (code != CLI_OK)
        return code;
    entry->operations = bench_operations(&trial);
    entry->bytes = bench_bytes(&trial);
    for (size_t i = 0; i < named; i++)
        names[i] = strcmp(o->engines.items[i], choice) == 0 ? NULL : o->engines.items[i];
    return bench_measure(bench, &trial, names, named > 0 ? named : 2, &entry->measured);
}

static int measure_all(struct bench *bench, const struct options *o, struct bench_report *report)
{
    const bool draws = cli_is_terminal(2), prints = o->json == NULL || strcmp(o->json, "-") != 0;
    struct progress progress = {.count = report->count};
    if (draws && !o->no_peak)
        cli_progress("measuring what the device can do at best");
    int code = o->no_peak ? CLI_OK : peak_measure(bench->session, &report->peak);
    if (draws)
        cli_clear_progress();
    if (code != CLI_OK)
        return code;
    bench->peak = o->no_peak ? NULL : &report->peak;
    if (prints)
        bench_print_header(report);
    bench->progress = draws ? show_progress : NULL;
    bench->progress_user = &progress;
    for (size_t i = 0; i < report->count && code == CLI_OK; i++) {
        progress.entry = &report->entries[i];
        progress.number = i + 1;
        code = measure_entry(bench, o, &report->entries[i]);
        if (draws)
            cli_clear_progress();
        if (prints && code == CLI_OK)
            bench_print_entry(report, &report->entries[i]);
        if (code == CLI_INTERRUPTED) {
            report->interrupted = true;
            report->count = i;
        }
    }
    return code;
}

/* Wrong answers are failures, and so is a run without measurements. */
static int judge(const struct bench_report *report)
{
    size_t measured = 0, wrong = 0;
    for (size_t i = 0; i < report->count; i++) {
        for (size_t j = 0; j < report->entries[i].measured.count; j++) {
            const struct bench_result *r = &report->entries[i].measured.results[j];
            measured += r->measured;
            wrong += r->measured && !r->right;
        }
    }
    if (measured == 0)
        return cli_fail("bench", CLI_CHECK_FAILED, NULL, "no engine that was asked for serves any of the shapes here");
    if (wrong > 0)
        return cli_fail("bench", CLI_CHECK_FAILED, NULL, "%zu of %zu answers are wrong; `clattn check` tells more", wrong,
                        measured);
    return CLI_OK;
}

/* Before anything is measured. */
static int open_files(const struct options *o, struct files *files)
{
    int code = cli_refuse_same("bench", "--plot", o->plot, "--json", o->json);
    if (code == CLI_OK && o->json != NULL)
        code = cli_open_output(&files->json, "bench", "--json", o->json);
    if (code == CLI_OK && o->plot != NULL)
        code = cli_open_output(&files->plot, "bench", "--plot", o->plot);
    return code;
}

static int write_files(const struct options *o, const struct bench_report *report, struct files *files)
{
    int code = files->json.file != NULL ? bench_write_json(files->json.file, report) : CLI_OK;
    if (code == CLI_OK && files->json.file != NULL)
        code = cli_commit_output(&files->json, "bench", "--json", o->json);
    if (code == CLI_OK && files->plot.file != NULL) {
        bench_draw_svg(files->plot.file, report);
        code = cli_commit_output(&files->plot, "bench", "--plot", o->plot);
    }
    return code;
}

/* Ctrl-C: the shapes that were finished are kept. */
static int tell_interrupted(const struct bench_report *report, size_t planned)
{
    return cli_fail("bench", CLI_INTERRUPTED, NULL, "interrupted: %zu of %zu shapes were measured", report->count, planned);
}

static int bench_device(const struct options *o, struct session *session, struct files *files)
{
    struct bench bench;
    struct bench_report report = {.settings = {1e-3 * o->warmup_ms, 1e-3 * o->min_ms, (size_t)o->flush}};
    char *const text = session_device_text(session);
    report.device = text ? text : "";
    report.device_id = clattn_context_device(session->context);
    int code = choose_shapes(o, session, &report);
    if (code == CLI_OK && (code = bench_open(&bench, session, &report.settings)) == CLI_OK) {
        const size_t planned = report.count;
        interrupt_defer();
        code = measure_all(&bench, o, &report);
        const bool keeps = code == CLI_OK || (report.interrupted && report.count > 0);
        const int written = keeps ? write_files(o, &report, files) : CLI_OK;
        if (written != CLI_OK)
            code = written;
        else
            code = report.interrupted ? tell_interrupted(&report, planned) : code != CLI_OK ? code : judge(&report);
        bench_close(&bench);
    }
    peak_free(&report.peak);
    free(report.entries);
    free(text);
    return code;
}

/* --------------------------------------------------------------------------------------------------------------- command */

int cmd_bench(int argc, char **argv)
{
    struct options o = {.warmup_ms = 100, .min_ms = 400};
    struct session session;
    int code;
    const struct cli_option options[] = {
        {"--shape", "\"SHAPE\"", CLI_LIST, &o.shapes, "instead of the default set; may be given more than once"},
        {"--engine", "NAME", CLI_LIST, &o.engines,
         "instead of the library's choice (auto) and unfused, the baseline; may be\ngiven more than once"},
        {"--device", "SEL", CLI_TEXT, &o.device, "an index as `clattn info` lists it (0:1), gpu, cpu, or a part of a name"},
        {"--json", "FILE", CLI_TEXT, &o.json, "everything as JSON; - writes it to standard output in place of the table"},
        {"--plot", "FILE.svg", CLI_TEXT, &o.plot, "a picture of it; - is standard output"},
        {"--warmup-ms", "N", CLI_REAL, &o.warmup_ms, "of each engine on each shape (100)"},
        {"--min-ms", "N", CLI_REAL, &o.min_ms, "of samples of each (400)"},
        {"--flush", "BYTES", CLI_INTEGER, &o.flush,
         "fill so much device memory before each launch, so that no launch finds\nits input in the cache (0: no fill)"},
        {"--no-peak", NULL, CLI_FLAG, &o.no_peak, "do not measure the device's peaks, which takes some seconds"},
    };
    const struct cli_command command = {
        .name = "bench",
        .synopsis = "[--shape \"SHAPE\"]... [--engine NAME]... [--device SEL] [--json FILE]\n"
                    "[--plot FILE.svg] [--warmup-ms N] [--min-ms N] [--flush BYTES]\n"
                    "[--no-peak]",
        .about =
            "Measures how fast a device computes attention: median time on the device's own clock, rate, ratio to the\n"
            "unfused baseline, and how near it comes to the device's peak, which is measured too. Each answer is compared\n"
            "with attention in double precision on the host. `build ms` is what a program waits for once: choice, build,\n"
            "kernel objects and first launch. Without --shape, the shapes of well-known models, scaled down on a CPU.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .examples = "  clattn bench\n"
                    "  clattn bench --shape \"h8 q2048 d64\" --shape \"h8 q2048 d64 causal\" --engine cpu --engine unfused\n"
                    "  clattn bench --device gpu --flush 268435456 --json bench.json --plot bench.svg\n",
    };
    if (!cli_parse(&command, argc, argv, &code))
        return code;
    if ((code = refuse(&o)) != CLI_OK)
        return code;
    struct files files;
    memset(&files, 0, sizeof files);
    code = open_files(&o, &files);
    code = code != CLI_OK ? code : session_open(&session, "bench", o.device);
    if (code == CLI_OK) {
        code = bench_device(&o, &session, &files);
        session_close(&session);
    }
    output_abandon(&files.json);
    output_abandon(&files.plot);
    return code;
}
