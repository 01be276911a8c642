/* SPDX-License-Identifier: Apache-2.0
 * clattn check: the test matrix on the user's own device. */
#define CLATTN_EXPERIMENTAL
#include "check_report.h"
#include "cli.h"
#include "interrupt.h"
#include "matrix.h"
#include "number.h"
#include "random_shape.h"
#include "session.h"
#include "system.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_FAILURES = 3, DEFAULT_SEED = 1 };

struct check {
    const char *device; /* as the user named it, or NULL */
    const char *json_path;
    struct session session;
    clattn_context *emulated; /* a second context, with device facts changed */
    char override[96];        /* those facts */
    size_t builds;            /* of emulated contexts that are gone */
    const char *engine;
    bool full, progress;
    int64_t random; /* random problems instead of the matrix */
    uint64_t seed;
    double most_work; /* trials of more are left out; 0: there is no limit */
    size_t left_out;
    int64_t part, parts;        /* only this part of each group, from 0 on */
    size_t done, seen, planned; /* trials of the current group */
    struct tally group, total;
    double group_start;        /* on clock_seconds */
    struct check_report *json; /* NULL: not requested */
    size_t declined;           /* of the current engine */
    char why[256];             /* of the first of them */
    int code;                  /* CLI_OK, or why everything stops */
};

static void log_nothing(void *user, clattn_log_level level, const char *text) { (void)user, (void)level, (void)text; }

/* The context whose facts are changed that way; it shares OpenCL's context and queue with the plain one. NULL: check->code is
 * set. */
static clattn_context *context_for(struct check *check, const char *override)
{
    clattn_context *plain = check->session.context;
    clattn_context_options options;
    clattn_error error;
    if (override[0] == '\0')
        return plain;
    if (check->emulated && strcmp(check->override, override) == 0)
        return check->emulated;
    if (check->emulated)
        check->builds += clattn_context_build_count(check->emulated);
    clattn_context_destroy(check->emulated);
    check->emulated = NULL;
    snprintf(check->override, sizeof check->override, "%s", override);
    clattn_context_options_init(&options);
    clattn_error_init(&error);
    options.overrides = override;
    options.log = log_nothing;
    options.cache_off = true;
    if (clattn_context_create(clattn_context_cl(plain), clattn_context_device(plain), &options, &check->emulated, &error) !=
        CLATTN_SUCCESS)
        check->code = cli_fail_library("check", &error);
    return check->emulated;
}

/* ------------------------------------------------------------------------------------------------------------- results */

static void consider(struct worst *worst, const char *what, double error, double bound)
{
    const double share = error == 0.0 ? 0.0 : error / bound;
    if (share > worst->share)
        *worst = (struct worst){what, error, share};
}

static void consider_all(struct worst *worst, const struct trial_result *r)
{
    consider(worst, "O", r->max_error, r->bound);
    consider(worst, "|O|", r->rel_error, r->rel_bound);
    consider(worst, "LSE", r->lse_error, r->lse_bound);
    consider(worst, "weights", r->weights_error, r->weights_bound);
}

static void clear_progress(const struct check *check)
{
    if (check->progress)
        cli_clear_progress();
}

static void show_progress(const struct check *check, const char *group)
{
    if (check->progress)
        cli_progress("%-10s %-13s %6zu of %zu", check->engine, group, check->done, check->planned);
}

static void print_failure(const struct check *check, const struct trial *trial, const struct trial_result *result)
{
    char shape[512];
    trial_print(trial, shape, sizeof shape);
    clear_progress(check);
    check_report_failure(check->json, shape, result->message);
    printf("  FAILED  %s\n          %s\n          again: clattn check", shape, result->message);
    if (check->device)
        printf(" --device \"%s\"", check->device);
    printf(" --engine %s --shape \"%s\"\n", check->engine, shape);
    fflush(stdout);
}

/* The engine's line of the message: after "no engine serves ...:", "NAME: why". */
static void remember_why(struct check *check, const char *message)
{
    const char *const lines = strchr(message, '\n'), *text = lines && lines[1] ? lines + 1 : message;
    const size_t name = strlen(check->engine);
    text += strspn(text, " ");
    if (strncmp(text, check->engine, name) == 0 && text[name] == ':')
        text += name + 1 + strspn(text + name + 1, " ");
    snprintf(check->why, sizeof check->why, "%.*s", (int)strcspn(text, "\n"), text);
}

static void count(struct check *check, const struct trial_result *result)
{
    struct tally *const tally = &check->group;
    if (result->status == CLATTN_UNSUPPORTED) {
        if (check->declined++ == 0)
            remember_why(check, result->message);
        tally->declined++;
        return;
    }
    result->ok ? tally->passed++ : tally->failed++;
    if (result->status == CLATTN_SUCCESS)
        consider_all(&tally->worst, result);
}

static void add(struct tally *total, const struct tally *part)
{
    total->passed += part->passed;
    total->failed += part->failed;
    total->declined += part->declined;
}

static void print_group(const struct check *check, const struct matrix_group *group)
{
    const struct tally *t = &check->group;
    const double seconds = clock_seconds() - check->group_start;
    clear_progress(check);
    if (t->passed + t->failed == 0) /* one line an engine says so, not one a group */
        return;
    check_report_group(check->json, group->name, t, seconds);
    printf("%-10s %-13s %6zu passed %4zu failed %6.1f s", check->engine, group->name, t->passed, t->failed, seconds);
    if (t->worst.share > 0.0)
        printf("   worst %7.1e (%s), %3.0f%% of what is allowed", t->worst.error, t->worst.what, 100.0 * t->worst.share);
    if (t->declined > 0)
        printf("   %zu not served", t->declined);
    printf("\n");
    fflush(stdout);
}

/* -------------------------------------------------------------------------------------------------------------- trials */

/* Runs one trial on the current engine. False: everything stops, for the reason in check->code. */
static bool run(struct check *check, const struct trial *trial, struct trial_result *result)
{
    clattn_context *context = context_for(check, trial->override);
    if (!context)
        return false;
    trial_run_engine(context, check->session.queue, check->engine, trial, result);
    if (result->status == CLATTN_DEVICE_LOST) {
        print_failure(check, trial, result);
        check->code = cli_fail("check", CLI_FAILED, NULL, "the device failed and cannot be used any more: %s", result->message);
    }
    return check->code == CLI_OK;
}

static bool is_left_out(const struct check *check, const struct trial *trial)
{
    return check->most_work > 0.0 && trial_work(trial) > check->most_work;
}

static bool visit(void *user, const struct matrix_group *group, const char *text)
{
    struct check *check = user;
    struct trial trial;
    struct trial_result result;
    clattn_error error;
    clattn_error_init(&error);
    if (check->seen++ * (size_t)check->parts / check->planned != (size_t)check->part)
        return true;
    show_progress(check, group->name);
    if (trial_parse(text, &trial, &error) != CLATTN_SUCCESS) {
        check->code = cli_fail_library("check", &error);
        return false;
    }
    if (is_left_out(check, &trial)) {
        check->left_out++;
        return true;
    }
    if (interrupt_is_pending()) {
        check->code = CLI_INTERRUPTED;
        return false;
    }
    if (!run(check, &trial, &result))
        return false;
    check->done++;
    count(check, &result);
    if (!result.ok && result.status != CLATTN_UNSUPPORTED && check->group.failed <= SHOWN_FAILURES)
        print_failure(check, &trial, &result);
    return true;
}

static void run_group(struct check *check, const struct matrix_group *group)
{
    memset(&check->group, 0, sizeof check->group);
    check->group_start = clock_seconds();
    check->done = check->seen = 0;
    check->planned = matrix_count(group, check->full);
    if (check->planned == 0) /* too long for the quick sample */
        return;
    matrix_walk(group, check->full, check->seed, visit, check);
    print_group(check, group);
    add(&check->total, &check->group);
}

static void run_random(struct check *check)
{
    static const struct matrix_group group = {.name = "random"};
    uint64_t state = check->seed;
    char text[512];
    memset(&check->group, 0, sizeof check->group);
    check->group_start = clock_seconds();
    check->done = check->seen = 0;
    check->planned = (size_t)check->random;
    for (int64_t i = 0; i < check->random && check->code == CLI_OK; i++) {
        random_shape(&state, true, text, sizeof text);
        visit(check, &group, text);
    }
    print_group(check, &group);
    add(&check->total, &check->group);
}

static void run_shape(struct check *check, const struct trial *trial)
{
    struct trial_result r;
    memset(&check->group, 0, sizeof check->group);
    check->group_start = clock_seconds();
    if (!run(check, trial, &r))
        return;
    count(check, &r);
    add(&check->total, &check->group);
    if (r.status == CLATTN_UNSUPPORTED) /* print_declined reports it */
        return;
    check_report_group(check->json, "shape", &check->group, clock_seconds() - check->group_start);
    printf("%-10s %s   O: error %.2e of %.2e allowed, relative %.2e of %.2e", check->engine, r.ok ? "passed" : "FAILED",
           r.max_error, r.bound, r.rel_error, r.rel_bound);
    if (trial->problem.lse.present)
        printf("; LSE: %.2e of %.2e", r.lse_error, r.lse_bound);
    printf("; %" PRId64 " rows\n", r.rows_checked);
    if (!r.ok)
        print_failure(check, trial, &r);
}

/* What an engine does not serve, in one line. */
static void print_declined(const struct check *check)
{
    if (check->declined == 0)
        return;
    clear_progress(check);
    printf("%-10s %6zu not served, the first: %s\n", check->engine, check->declined, check->why);
    fflush(stdout);
    check_report_declined(check->json, check->declined, check->why);
}

/* ------------------------------------------------------------------------------------------------------------- command */

static bool print_text(void *user, const struct matrix_group *group, const char *text)
{
    const struct check *check = user;
    struct trial trial;
    if (trial_parse(text, &trial, NULL) != CLATTN_SUCCESS || !is_left_out(check, &trial))
        printf("%-13s %s\n", group->name, text);
    return true;
}

static bool is_chosen(const struct cli_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0)
            return true;
    return list->count == 0;
}

/* Names the user gave must exist, or the check would pass by doing nothing. */
static int refuse_unknown(const struct cli_list *engines, const struct cli_list *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        if (!matrix_find(groups->items[i]))
            return cli_fail("check", CLI_USAGE, "--group", "there is no group \"%s\"; `clattn check --list` shows them",
                            groups->items[i]);
    return session_refuse_engines("check", engines, NULL);
}

static void run_all(struct check *check, const struct cli_list *engines, const struct cli_list *groups,
                    const struct trial *shape)
{
    for (size_t e = 0; check->code == CLI_OK && clattn_engine_name(e); e++) {
        check->engine = clattn_engine_name(e);
        if (!is_chosen(engines, check->engine))
            continue;
        check->declined = 0;
        check_report_engine(check->json, check->engine);
        if (shape)
            run_shape(check, shape);
        else if (check->random > 0)
            run_random(check);
        for (size_t g = 0; !shape && check->random == 0 && check->code == CLI_OK && g < matrix_group_count; g++)
            if (is_chosen(groups, matrix_groups[g].name))
                run_group(check, &matrix_groups[g]);
        print_declined(check);
    }
}

static int conclude(struct check *check, double seconds, struct output *json)
{
    const struct tally *t = &check->total;
    const size_t builds = check->builds + clattn_context_build_count(check->session.context) +
                          (check->emulated ? clattn_context_build_count(check->emulated) : 0);
    printf("%zu passed, %zu failed, %zu not served; %zu programs built; %.1f s\n", t->passed, t->failed, t->declined, builds,
           seconds);
    if (check->left_out > 0)
        printf("%zu left out by --work\n", check->left_out);
    fflush(stdout); /* the verdict appears before contexts are destroyed, which takes some drivers long */
    if (!check_report_write(check->json, t, builds, seconds, check->code == CLI_INTERRUPTED, json->file))
        return cli_fail("check", CLI_FAILED, "--json", "out of memory");
    if (json->file != NULL) {
        const int code = cli_commit_output(json, "check", "--json", check->json_path);
        if (code != CLI_OK)
            return code;
    }
    if (check->code == CLI_INTERRUPTED)
        return cli_fail("check", CLI_INTERRUPTED, NULL, "interrupted: what was checked by then stands above");
    if (check->code != CLI_OK)
        return check->code;
    if (t->passed + t->failed == 0)
        return cli_fail("check", CLI_CHECK_FAILED, NULL,
                        "nothing was checked: no engine that was asked for serves it on this device");
    return t->failed > 0 ? CLI_CHECK_FAILED : CLI_OK;
}

/* Which device, and what is run on it. */
static int introduce(struct check *check, const struct trial *shape)
{
    const char *const trials = shape               ? "one shape"
                               : check->random > 0 ? "random problems"
                               : check->full       ? "all of the test matrix"
                                                   : "a sample of the test matrix";
    char *text = session_device_text(&check->session);
    if (shape)
        printf("%s\n", text ? text : "");
    else
        printf("%s: %s, seed %" PRIu64 "\n", text ? text : "", trials, check->seed);
    fflush(stdout);
    if (check->json_path)
        check->json = check_report_create(text ? text : "", trials, check->seed);
    free(text);
    return check->json_path && !check->json ? cli_fail("check", CLI_FAILED, "--json", "out of memory") : CLI_OK;
}

static int check_device(struct check *check, const struct cli_list *engines, const struct cli_list *groups,
                        const struct trial *shape)
{
    struct output json = {.file = NULL};
    int code = check->json_path ? cli_open_output(&json, "check", "--json", check->json_path) : CLI_OK;
    code = code != CLI_OK ? code : session_open_uncached(&check->session, "check", check->device);
    if (code == CLI_OK && (code = introduce(check, shape)) == CLI_OK) {
        const double start = clock_seconds();
        interrupt_defer();
        run_all(check, engines, groups, shape);
        code = conclude(check, clock_seconds() - start, &json);
    }
    check_report_destroy(check->json);
    clattn_context_destroy(check->emulated);
    session_close(&check->session);
    output_abandon(&json);
    return code;
}

static int list_matrix(struct check *check, const struct cli_list *groups)
{
    for (size_t g = 0; g < matrix_group_count; g++) {
        if (!is_chosen(groups, matrix_groups[g].name))
            continue;
        printf("# %s: %s\n", matrix_groups[g].name, matrix_groups[g].about);
        matrix_walk(&matrix_groups[g], check->full, check->seed, print_text, check);
    }
    return CLI_OK;
}

static bool read_part(const char *text, struct check *check)
{
    if (!number_read(&text, &check->part) || *text++ != '/' || !number_read(&text, &check->parts) || *text != '\0')
        return false;
    check->part--;
    return check->parts > 0 && check->part >= 0 && check->part < check->parts;
}

int cmd_check(int argc, char **argv)
{
    struct check check = {.code = CLI_OK, .parts = 1};
    struct cli_list engines = {.count = 0}, groups = {.count = 0};
    bool quick = false, list = false;
    const char *shape = NULL, *part = NULL;
    int64_t seed = DEFAULT_SEED, work = 0;
    struct trial trial;
    clattn_error error;
    int code;
    const struct cli_option options[] = {
        {"--device", "SEL", CLI_TEXT, &check.device, "an index as `clattn info` lists it (0:1), gpu, cpu, or a part of a name"},
        {"--engine", "NAME", CLI_LIST, &engines, "only this engine; may be given more than once"},
        {"--group", "NAME", CLI_LIST, &groups, "only this group of the matrix; may be given more than once"},
        {"--quick", NULL, CLI_FLAG, &quick, "a seeded sample, some minutes on a CPU, most of them for builds (the default)"},
        {"--full", NULL, CLI_FLAG, &check.full, "the whole matrix"},
        {"--seed", "N", CLI_INTEGER, &seed, "another sample, other numbers"},
        {"--work", "N", CLI_INTEGER, &work,
         "leave out shapes of more than N multiply-adds, for devices that take long over them"},
        {"--random", "N", CLI_INTEGER, &check.random, "N problems with random options from --seed, instead of the matrix"},
        {"--part", "N/M", CLI_TEXT, &part, "of each group only part N of M, 1/M to M/M, for as many processes side by side"},
        {"--shape", "\"SHAPE\"", CLI_TEXT, &shape,
         "only this one; in addition to the words of a shape it may hold layout=NAME,\n"
         "call=BATCH,SEQ_Q,SEQ_KV, inputs=NAME, repeats=N, override=FACTS, seed=N"},
        {"--json", "FILE", CLI_TEXT, &check.json_path, "everything as JSON too; - is standard output"},
        {"--list", NULL, CLI_FLAG, &list, "print the shapes instead of running them; needs no device"},
    };
    const struct cli_command command = {
        .name = "check",
        .synopsis = "[--device SEL] [--engine NAME]... [--group NAME]... [--quick | --full] [--seed N]\n"
                    "[--work N] [--random N] [--part N/M] [--shape \"SHAPE\"] [--json FILE]\n"
                    "[--list]",
        .about = "Runs the test matrix on a device: each engine, many shapes, every output compared with attention in double\n"
                 "precision on the host, guard bands around every buffer. One line a group; failing shapes with the command\n"
                 "that runs them again.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .examples = "  clattn check\n"
                    "  clattn check --device gpu --full\n"
                    "  clattn check --engine simt --group layouts --seed 7\n"
                    "  clattn check --shape \"b2 hq8 hkv2 q37 k53 d64 fp16 causal=bottom-right lse layout=bshd\"\n",
    };
    if (!cli_parse(&command, argc, argv, &code))
        return code;
    if (quick && check.full)
        return cli_fail("check", CLI_USAGE, "--full", "cannot be given together with --quick; choose one");
    if (seed < 0)
        return cli_fail("check", CLI_USAGE, "--seed", "must be 0 or more");
    if (check.random < 0)
        return cli_fail("check", CLI_USAGE, "--random", "must be 0 or more");
    if (work < 0)
        return cli_fail("check", CLI_USAGE, "--work", "must be 0 or more");
    if ((code = refuse_unknown(&engines, &groups)) != CLI_OK)
        return code;
    if (part && !read_part(part, &check))
        return cli_fail("check", CLI_USAGE, "--part", "\"%s\" is no part: 2/16 is the second of sixteen", part);
    clattn_error_init(&error);
    if (shape && (trial_parse(shape, &trial, &error) != CLATTN_SUCCESS || !session_problem_is_valid(&trial.problem, &error)))
        return cli_fail("check", CLI_USAGE, "--shape", "%s", error.message);
    check.seed = (uint64_t)seed;
    check.most_work = (double)work;
    check.progress = cli_is_terminal(2);
    if (list)
        return list_matrix(&check, &groups);
    return check_device(&check, &engines, &groups, shape ? &trial : NULL);
}
