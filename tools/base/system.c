/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* ioctl and TIOCGWINSZ, fchmod, strndup */

#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#ifdef _WIN32
#include <io.h>
#else
#include <sys/ioctl.h>
#include <sys/utsname.h>
#endif

bool system_is_terminal(int file_descriptor) { return isatty(file_descriptor) != 0; }

int system_columns(int file_descriptor)
{
#ifdef _WIN32
    (void)file_descriptor;
    return 80;
#else
    struct winsize size;
    return ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
#endif
}

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool system_is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

void system_name(char *text, size_t size)
{
#ifdef _WIN32
    snprintf(text, size, "Windows");
#else
    struct utsname name;
    if (uname(&name) == 0)
        snprintf(text, size, "%.80s %.80s %.80s", name.sysname, name.release, name.machine);
    else
        snprintf(text, size, "n/a");
#endif
}

bool system_program_folder(char *path, size_t size)
{
    size_t length = 0;
#ifdef _WIN32
    snprintf(path, size, "%s", _pgmptr != NULL ? _pgmptr : "");
    length = strlen(path);
#elif defined(__APPLE__)
    uint32_t room = (uint32_t)size;
    length = _NSGetExecutablePath(path, &room) == 0 ? strlen(path) : 0;
#else
    const ssize_t got = readlink("/proc/self/exe", path, size - 1);
    length = got > 0 ? (size_t)got : 0;
#endif
    while (length > 0 && path[length - 1] != '/' && path[length - 1] != '\\')
        length--;
    path[length > 0 ? length - 1 : 0] = '\0';
    return length > 1;
}

/* --------------------------------------------------------------------------------------------------------------- files */

bool system_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

long system_process(void) { return (long)getpid(); }

#ifdef _WIN32

/* Numbers of files are not to be had from stat there: names decide. */
bool system_is_same_file(const char *a, const char *b) { return strcmp(a, b) == 0; }

bool system_is_standard_output(const char *path)
{
    (void)path;
    return false;
}

char *system_follow_links(const char *path) { return strdup(path); }

static int duplicate(int file_descriptor) { return _dup(file_descriptor); }

FILE *system_create(const char *path, const char *model)
{
    (void)model;
    return fopen(path, "wbx");
}

bool system_sync(FILE *file) { return _commit(_fileno(file)) == 0; }

bool system_rename(const char *from, const char *to)
{
    remove(to);
    return rename(from, to) == 0;
}

#else

/* The folder and the name in it, "." for a name without a folder. */
static char *folder_of(const char *path, const char **name)
{
    const char *const slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (slash == NULL)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

bool system_is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    const bool has_first = stat(a, &first) == 0, has_second = stat(b, &second) == 0;
    if (has_first && has_second) /* two outputs may go to one device */
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino && !S_ISCHR(first.st_mode);
    if (has_first || has_second)
        return false;
    const char *first_name, *second_name;
    char *const first_folder = folder_of(a, &first_name), *const second_folder = folder_of(b, &second_name);
    const bool same = first_folder && second_folder && strcmp(first_name, second_name) == 0 &&
                      stat(first_folder, &first) == 0 && stat(second_folder, &second) == 0 && first.st_dev == second.st_dev &&
                      first.st_ino == second.st_ino;
    free(first_folder);
    free(second_folder);
    return same;
}

bool system_is_standard_output(const char *path)
{
    struct stat file, output;
    return stat(path, &file) == 0 && fstat(STDOUT_FILENO, &output) == 0 && !S_ISCHR(file.st_mode) &&
           file.st_dev == output.st_dev && file.st_ino == output.st_ino;
}

/* As Linux does with fs.protected_symlinks: in a sticky folder that everyone may write to, only links of one's own and of the
 * folder's owner are followed. Asked after the link was read: no other user can have put one of these there. */
static bool is_trusted_link(const char *path)
{
    struct stat link, folder;
    const char *name;
    char *const parent = folder_of(path, &name);
    const bool trusted = parent != NULL && lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && stat(parent, &folder) == 0 &&
                         (link.st_uid == geteuid() || link.st_uid == folder.st_uid ||
                          (folder.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH));
    free(parent);
    return trusted;
}

/* What the link at `path` names, NULL when it is none (*is_link false) or memory is out. */
static char *read_link(const char *path, bool *is_link)
{
    char target[4096];
    const ssize_t length = readlink(path, target, sizeof target - 1);
    *is_link = length >= 0;
    if (length < 0)
        return NULL;
    if (!is_trusted_link(path)) {
        errno = EACCES;
        return NULL;
    }
    target[length] = '\0';
    const char *const slash = target[0] == '/' ? NULL : strrchr(path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - path) : 0;
    char *const name = malloc(folder + (size_t)length + 1);
    if (name == NULL)
        return NULL;
    memcpy(name, path, folder);
    memcpy(name + folder, target, (size_t)length + 1);
    return name;
}

char *system_follow_links(const char *path)
{
    char *at = strdup(path);
    for (int depth = 0; at != NULL; depth++) {
        bool is_link;
        char *const next = read_link(at, &is_link);
        if (!is_link)
            return at;
        free(at);
        at = next;
        if (depth == 40) {
            free(at);
            errno = ELOOP;
            return NULL;
        }
    }
    return NULL;
}

static int duplicate(int file_descriptor) { return fcntl(file_descriptor, F_DUPFD_CLOEXEC, 3); }

FILE *system_create(const char *path, const char *model)
{
    struct stat about;
    const bool has_model = stat(model, &about) == 0;
    /* What replaces a private file is private from the start. */
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, has_model ? 0600 : 0666);
    if (descriptor < 0)
        return NULL;
    if (has_model) {
        /* Where the owner may not be kept the rights are, and with neither the file is still written. */
        const int owner = fchown(descriptor, about.st_uid, about.st_gid), rights = fchmod(descriptor, about.st_mode & 0777);
        (void)owner;
        (void)rights;
    }
    FILE *const file = fdopen(descriptor, "wb");
    if (file == NULL) {
        const int code = errno;
        close(descriptor);
        unlink(path);
        errno = code;
    }
    return file;
}

bool system_sync(FILE *file) { return fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP; }

bool system_rename(const char *from, const char *to) { return rename(from, to) == 0; }

#endif

void system_guard_streams(void)
{
#ifndef _WIN32
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
#endif
}

FILE *system_take_standard_output(void)
{
    const int descriptor = duplicate(1);
    FILE *const file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (file != NULL && dup2(2, 1) < 0)
        close(1);
    return file;
}
