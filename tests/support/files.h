/* SPDX-License-Identifier: Apache-2.0
 * Files for tests: reading whole files, listing a folder, and an altered copy of the kernel sources. */
#ifndef CLATTN_TESTS_FILES_H
#define CLATTN_TESTS_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* The top of the source tree, set by the build. */
#ifndef CLATTN_SOURCE_DIR
#error "the build defines CLATTN_SOURCE_DIR"
#endif

/* The whole file, zero-terminated, to be freed; NULL when it cannot be read. */
char *file_read(const char *path);
bool file_write(const char *path, const char *text);

/* "folder/name" in a buffer to be freed. */
char *path_join(const char *folder, const char *name);

/* Names of a folder's plain files that end in `suffix`, sorted; folder_tree has those of the folders in it too, such as
 * "split/merge.cl". Freed with names_free. */
struct names {
    char **list;
    size_t count;
};
bool folder_list(const char *folder, const char *suffix, struct names *names);
bool folder_tree(const char *folder, const char *suffix, struct names *names);
void names_free(struct names *names);

/* A new, empty temporary folder; NULL on failure. folder_remove deletes it with all that is in it, and frees the name. */
char *folder_create(void);
void folder_remove(char *folder);

/* A temporary folder that holds a copy of cl/ of the source tree; NULL on failure. sources_remove deletes and frees it. */
char *sources_copy(void);
void sources_remove(char *root);

/* Replaces `from`, which must occur in the file exactly once, by `to`. */
bool sources_alter(const char *root, const char *file, const char *from, const char *to);

#endif
