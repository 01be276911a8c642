/* SPDX-License-Identifier: Apache-2.0
 * What `clattn info` reports about this machine, collected once and printed as text or JSON. */
#ifndef CLATTN_TOOLS_SURVEY_H
#define CLATTN_TOOLS_SURVEY_H

#include "cli.h"

/* What would serve a shape on a device. */
struct survey_answer {
    bool asked;
    clattn_status status;
    char *text;   /* the plan's description, or why there is none */
    char *others; /* why the other engines decline, or in which order they would be tried */
    const char *engine;
    size_t workspace;
};

struct survey_device {
    int platform, index;
    cl_device_id id;
    bool is_default; /* used when no device is named */
    char *facts;     /* name=value lines; NULL: the device could not be asked, and `error` says why */
    clattn_error error;
    struct survey_answer answer;
};

struct survey_platform {
    cl_platform_id id;
    char name[256], version[256];
    size_t device_count; /* that can be used */
};

struct survey {
    struct survey_platform *platforms;
    size_t platform_count;
    struct survey_device *devices;
    size_t device_count;
    bool out_of_memory;
    char system[256];  /* "Linux 6.1 x86_64" */
    char loader[320];  /* "OpenCL ICD Loader 2.3.1 (OCL Icd)", or "n/a" */
    const char *shape; /* the requested shape; NULL: none */
};

/* All devices, or only the one that `selector` names. Returns CLI_OK or the exit code after the message was printed. */
int survey_take(struct survey *survey, const char *selector);

/* The problem of a SHAPE text. Needs no device. Returns CLI_OK or an exit code after the message. */
int survey_read_shape(const char *shape, clattn_problem *problem);

/* Asks every device which engine would serve the shape; builds kernels. A device that cannot serve it is no error. */
int survey_ask(struct survey *survey, const char *shape);

void survey_free(struct survey *survey);

/* The value of a fact; "" when it is absent. */
char *fact_of(const char *facts, const char *name, char *value, size_t size);
uint64_t fact_number(const char *facts, const char *name); /* 0 when it is absent; K, M and G understood */

void survey_print(const struct survey *survey);
int survey_print_json(const struct survey *survey);

#endif
