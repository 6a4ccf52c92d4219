/* A preload shim that disturbs one system call of a program.
 *
 *   program ──► libc's name (open64, pwrite64, …) ──► this file ──► counted? the Nth? ──► libc
 *                                                                        └─► killed, failed, cut short, or the
 *                                                                            file system loses its power
 *
 * The environment says what to do:
 *   FAULT_UNDER    a folder; only calls on it and on files below it count
 *   FAULT_CLASSES  letters of the calls that count: m changes of names and sizes, y syncs, w writes, r reads,
 *                  o opens and looks, a memory and threads (those have no file)
 *   FAULT_AT       which counted call it is, from 1 on; 0 or absent: count only
 *   FAULT_DO       kill  SIGKILL in place of the call
 *                  late  SIGKILL after the call
 *                  torn  SIGKILL after the first half of a write
 *                  fail  the call fails with FAULT_ERRNO
 *                  short a read or write handles the first half
 *                  cut   the file system of FAULT_UNDER is shut down without a flush of its log, and SIGKILL
 *                  dead  the same shutdown, but the program continues on the dead file system
 *   FAULT_ERRNO    an error number
 *   FAULT_ON       1: every counted call from FAULT_AT on fails
 *   FAULT_RING     0: io_uring is refused, so that reads and writes are system calls that pass through this file
 *   FAULT_STICKY   1: links are followed as with fs.protected_symlinks=1: a link is refused if another user made it in
 *                  a folder that has the sticky bit and that all users may write to
 *   FAULT_LOG      a file: one line for each counted call, or (with FAULT_AT) for the disturbed ones
 *
 * Calls are counted in the order in which they arrive. Threads may change that order between two runs.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHUTDOWN 0x8004587dU /* EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN */
#define WITHOUT_LOG_FLUSH 2

enum action { COUNT, KILL, LATE, TORN, FAIL, SHORT, CUT, DEAD };

static char under[PATH_MAX];
static size_t under_len;
static char classes[16];
static long at;
static enum action action;
static int fail_errno, persistent, refuse_ring, sticky, log_fd = -1;
static atomic_long seen;

static long (*real_syscall)(long, ...);

__attribute__((constructor)) static void read_environment(void) {
    real_syscall = dlsym(RTLD_NEXT, "syscall");
    const char *text = getenv("FAULT_UNDER");
    if (!text || !*text) return;
    under_len = strlen(text);
    if (under_len >= sizeof under) { under_len = 0; return; }
    memcpy(under, text, under_len + 1);
    if ((text = getenv("FAULT_CLASSES"))) snprintf(classes, sizeof classes, "%s", text);
    if ((text = getenv("FAULT_AT"))) at = atol(text);
    if ((text = getenv("FAULT_ERRNO"))) fail_errno = atoi(text);
    if ((text = getenv("FAULT_ON"))) persistent = *text == '1';
    if ((text = getenv("FAULT_STICKY"))) sticky = *text == '1';
    if ((text = getenv("FAULT_RING"))) refuse_ring = *text == '0';
    if ((text = getenv("FAULT_LOG"))) log_fd = real_syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if ((text = getenv("FAULT_DO"))) {
        static const char *const names[] = {"count", "kill", "late", "torn", "fail", "short", "cut", "dead"};
        for (int i = 0; i < 8; i++)
            if (!strcmp(text, names[i])) action = i;
    }
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static int is_under(const char *path) {
    return !strncmp(path, under, under_len) && (path[under_len] == '/' || !path[under_len]);
}

/* The path that a descriptor is open on, or "". */
static void path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, PATH_MAX - 1);
    path[len > 0 ? len : 0] = 0;
}

/* The absolute path of `name` as seen from the folder `dir`. */
static void absolute(int dir, const char *name, char *path) {
    if (name && *name == '/') { snprintf(path, PATH_MAX, "%s", name); return; }
    if (dir == AT_FDCWD) {
        if (!getcwd(path, PATH_MAX)) *path = 0;
    } else {
        path_of(dir, path);
    }
    if (name && *name) {
        size_t len = strlen(path);
        snprintf(path + len, PATH_MAX - len, "/%s", name);
    }
}

/* Counts a call and returns what to do with it; COUNT means that the call is not disturbed. */
static enum action counted(char class, const char *call, const char *path) {
    if (!under_len || !strchr(classes, class)) return COUNT;
    if (path && !is_under(path)) return COUNT;
    long number = atomic_fetch_add(&seen, 1) + 1;
    int now = at > 0 && (number == at || (persistent && number > at));
    if (log_fd >= 0 && (now || at <= 0)) {
        char line[PATH_MAX + 64];
        int len = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path ? path : "");
        if (len > 0) real_syscall(SYS_write, log_fd, line, (size_t)len);
    }
    if (!now) return COUNT;
    if (action == KILL) die();
    if (action == CUT || action == DEAD) {
        int fd = real_syscall(SYS_openat, AT_FDCWD, under, O_RDONLY | O_CLOEXEC);
        unsigned flags = WITHOUT_LOG_FLUSH;
        if (fd >= 0) {
            ioctl(fd, SHUTDOWN, &flags);
            real_syscall(SYS_close, fd);
        }
        if (action == CUT) die();
        return COUNT;
    }
    return action;
}

static enum action on_fd(char class, const char *call, int fd) {
    int saved = errno;
    char path[PATH_MAX];
    if (!under_len || !strchr(classes, class)) return COUNT;
    path_of(fd, path);
    enum action what = counted(class, call, path);
    errno = saved;
    return what;
}

static enum action on_path(char class, const char *call, int dir, const char *name) {
    int saved = errno;
    char path[PATH_MAX];
    if (!under_len || !strchr(classes, class)) return COUNT;
    absolute(dir, name, path);
    enum action what = counted(class, call, path);
    errno = saved;
    return what;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define FAILS(what, failed) if ((what) == FAIL) { errno = fail_errno; return failed; }
#define ENDS(what) if ((what) == LATE || (what) == TORN) die()

/* Whether fs.protected_symlinks would refuse to follow the last part of a path. */
static int is_planted_link(int dir, const char *name) {
    if (!sticky) return 0;
    int saved = errno;
    char path[PATH_MAX];
    struct stat link, folder;
    absolute(dir, name, path);
    int planted = 0;
    if (is_under(path) && !real_syscall(SYS_newfstatat, AT_FDCWD, path, &link, AT_SYMLINK_NOFOLLOW) && S_ISLNK(link.st_mode)) {
        char *slash = strrchr(path, '/');
        *slash = 0;
        planted = link.st_uid != geteuid() && !real_syscall(SYS_newfstatat, AT_FDCWD, path, &folder, 0)
            && (folder.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) && folder.st_uid != link.st_uid;
    }
    errno = saved;
    return planted;
}
#define FOLLOWS(dir, path, followed, failed) if ((followed) && is_planted_link(dir, path)) { errno = EACCES; return failed; }

/* Opens. An open that makes a file counts as a change of names. */
static char class_of_open(int flags) { return flags & (O_CREAT | O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE ? 'm' : 'o'; }
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        FOLLOWS(AT_FDCWD, path, !(flags & O_NOFOLLOW), -1) \
        enum action what = on_path(class_of_open(flags), #name, AT_FDCWD, path); \
        FAILS(what, -1) \
        int fd = real(path, flags, mode); \
        ENDS(what); \
        return fd; \
    }
#define OPENAT(name) \
    int name(int dir, const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        FOLLOWS(dir, path, !(flags & O_NOFOLLOW), -1) \
        enum action what = on_path(class_of_open(flags), #name, dir, path); \
        FAILS(what, -1) \
        int fd = real(dir, path, flags, mode); \
        ENDS(what); \
        return fd; \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* Calls that give 0 or -1, on a path or on a descriptor. */
#define CALL(class, name, parameters, arguments, where) \
    int name parameters { \
        REAL(name); \
        enum action what = where; \
        FAILS(what, -1) \
        int result = real arguments; \
        ENDS(what); \
        return result; \
    }
#define BY_PATH(class, name, dir, path, parameters, arguments) CALL(class, name, parameters, arguments, on_path(class, #name, dir, path))
#define BY_FD(class, name, fd, parameters, arguments) CALL(class, name, parameters, arguments, on_fd(class, #name, fd))

BY_PATH('m', rename, AT_FDCWD, to, (const char *from, const char *to), (from, to))
BY_PATH('m', renameat, to_dir, to, (int from_dir, const char *from, int to_dir, const char *to), (from_dir, from, to_dir, to))
BY_PATH('m', renameat2, to_dir, to, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags), (from_dir, from, to_dir, to, flags))
BY_PATH('m', unlink, AT_FDCWD, path, (const char *path), (path))
BY_PATH('m', unlinkat, dir, path, (int dir, const char *path, int flags), (dir, path, flags))
BY_PATH('m', link, AT_FDCWD, to, (const char *from, const char *to), (from, to))
BY_PATH('m', linkat, to_dir, to, (int from_dir, const char *from, int to_dir, const char *to, int flags), (from_dir, from, to_dir, to, flags))
BY_PATH('m', symlink, AT_FDCWD, to, (const char *from, const char *to), (from, to))
BY_PATH('m', symlinkat, dir, to, (const char *from, int dir, const char *to), (from, dir, to))
BY_PATH('m', mkdir, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
BY_PATH('m', mkdirat, dir, path, (int dir, const char *path, mode_t mode), (dir, path, mode))
BY_PATH('m', rmdir, AT_FDCWD, path, (const char *path), (path))
BY_PATH('m', chmod, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
BY_PATH('m', chown, AT_FDCWD, path, (const char *path, uid_t user, gid_t group), (path, user, group))
BY_FD('m', fchmod, fd, (int fd, mode_t mode), (fd, mode))
BY_FD('m', fchown, fd, (int fd, uid_t user, gid_t group), (fd, user, group))
BY_FD('m', ftruncate, fd, (int fd, off_t size), (fd, size))
BY_FD('m', ftruncate64, fd, (int fd, off64_t size), (fd, size))
BY_FD('m', fallocate, fd, (int fd, int mode, off_t offset, off_t len), (fd, mode, offset, len))
BY_FD('m', fallocate64, fd, (int fd, int mode, off64_t offset, off64_t len), (fd, mode, offset, len))
BY_FD('m', fsetxattr, fd, (int fd, const char *name, const void *value, size_t len, int flags), (fd, name, value, len, flags))
BY_FD('y', fsync, fd, (int fd), (fd))
BY_FD('y', fdatasync, fd, (int fd), (fd))
BY_FD('y', syncfs, fd, (int fd), (fd))
BY_FD('y', sync_file_range, fd, (int fd, off64_t offset, off64_t len, unsigned flags), (fd, offset, len, flags))
BY_FD('o', flock, fd, (int fd, int how), (fd, how))
int stat64(const char *path, struct stat64 *found) {
    REAL(stat64);
    FOLLOWS(AT_FDCWD, path, 1, -1)
    FAILS(on_path('o', "stat64", AT_FDCWD, path), -1)
    return real(path, found);
}
BY_PATH('o', lstat64, AT_FDCWD, path, (const char *path, struct stat64 *found), (path, found))
BY_FD('o', fstat64, fd, (int fd, struct stat64 *found), (fd, found))
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *found) {
    REAL(statx);
    /* Rust's library asks whether there is such a call: without a path, which the compiler believes there always is. */
    const char *volatile given = path;
    if (!given) return real(dir, path, flags, mask, found);
    FOLLOWS(dir, path, path && *path && !(flags & AT_SYMLINK_NOFOLLOW), -1)
    FAILS(on_path('o', "statx", dir, path), -1)
    return real(dir, path, flags, mask, found);
}

/* Reads and writes. A short transfer handles whole sectors if it can, as direct I/O does. */
static size_t shorter(size_t len) { return len >= 1024 ? len / 2 / 512 * 512 : len > 1 ? len / 2 : len; }
#define TRANSFER(class, name, buffer, parameters, rest, restlist) \
    ssize_t name(int fd, buffer from, size_t len parameters) { \
        REAL(name); \
        enum action what = on_fd(class, #name, fd); \
        FAILS(what, -1) \
        ssize_t done = real(fd, from, what == SHORT || what == TORN ? shorter(len) : len restlist); \
        ENDS(what); \
        return done; \
    }
#define COMMA_OFFSET , off64_t offset
#define COMMA_OFF , offset
TRANSFER('r', read, void *, , , )
TRANSFER('w', write, const void *, , , )
TRANSFER('r', pread, void *, COMMA_OFFSET, , COMMA_OFF)
TRANSFER('r', pread64, void *, COMMA_OFFSET, , COMMA_OFF)
TRANSFER('w', pwrite, const void *, COMMA_OFFSET, , COMMA_OFF)
TRANSFER('w', pwrite64, const void *, COMMA_OFFSET, , COMMA_OFF)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    enum action what = on_fd('w', "writev", fd);
    FAILS(what, -1)
    ssize_t done = real(fd, parts, count > 1 && (what == SHORT || what == TORN) ? count / 2 : count);
    ENDS(what);
    return done;
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t len, unsigned flags) {
    REAL(copy_file_range);
    enum action what = on_fd('w', "copy_file_range", to);
    FAILS(what, -1)
    ssize_t done = real(from, from_at, to, to_at, what == SHORT || what == TORN ? shorter(len) : len, flags);
    ENDS(what);
    return done;
}

struct dirent64 *readdir64(DIR *folder) {
    REAL(readdir64);
    enum action what = on_fd('o', "readdir64", dirfd(folder));
    FAILS(what, NULL)
    struct dirent64 *found = real(folder);
    ENDS(what);
    return found;
}

/* Memory in large pieces, and threads. */
#define BIG_BYTES 65536
#define MMAP(name, offset_type) \
    void *name(void *where, size_t len, int protection, int flags, int fd, offset_type offset) { \
        REAL(name); \
        int big = (flags & MAP_ANONYMOUS) && len >= BIG_BYTES; \
        enum action what = big ? counted('a', #name, NULL) : COUNT; \
        FAILS(what, MAP_FAILED) \
        return real(where, len, protection, flags, fd, offset); \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    REAL(pthread_create);
    if (counted('a', "pthread_create", NULL) == FAIL) return EAGAIN;
    return real(thread, attributes, start, argument);
}

long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (!real_syscall) real_syscall = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_io_uring_setup && refuse_ring) { errno = EPERM; return -1; }
    enum action what = COUNT;
    if (number == SYS_renameat2) what = on_path('m', "renameat2", (int)c, (const char *)d);
#ifdef SYS_openat2
    if (number == SYS_openat2) what = on_path('o', "openat2", (int)a, (const char *)b);
#endif
    FAILS(what, -1)
    long result = real_syscall(number, a, b, c, d, e, f);
    ENDS(what);
    return result;
}
