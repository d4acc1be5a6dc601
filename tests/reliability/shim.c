// Stops the process just before the first call of each kind on each kind of file.
//
// Whoever waits for the process copies the directory, which is then what SIGKILL would leave there.
// Loaded by LD_PRELOAD. The kind of a file is its path below the run's directory, with every number
// and every long hexadecimal name as `#`.
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char prefix[PATH_MAX], met[1024][512];
static int list_to = -1, count, busy;

// Watch calls below a directory; tell each new kind to a descriptor. Called again: all are new.
void shim_arm(const char *directory, int descriptor) {
  count = 0;
  list_to = descriptor;
  snprintf(prefix, sizeof prefix, "%s", directory);
}

static int is_new(const char *kind) {
  while (__sync_lock_test_and_set(&busy, 1)) usleep(100);
  int at = 0;
  while (at < count && strcmp(met[at], kind)) at++;
  int new = at == count && count < 1024;
  if (new) snprintf(met[count++], sizeof met[0], "%s", kind);
  __sync_lock_release(&busy);
  return new;
}

static void seen(const char *call, int at, const char *path) {
  char whole[2 * PATH_MAX], base[PATH_MAX], kind[2 * PATH_MAX], *out = kind;
  if (!prefix[0] || !path) return;
  if (path[0] == '/') {
    snprintf(whole, sizeof whole, "%s", path);
  } else {
    char link[64];
    snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
    if (size < 0) return;
    base[size] = 0;
    snprintf(whole, sizeof whole, path[0] ? "%s/%s" : "%s", base, path);
  }
  size_t length = strlen(prefix);
  if (strncmp(whole, prefix, length)) return;
  out += snprintf(out, 64, "%s ", call);
  for (const char *in = whole + length; *in;) {
    size_t digits = strspn(in, "0123456789"), hex = strspn(in, "0123456789abcdef");
    size_t skip = hex >= 12 ? hex : digits;
    if (skip) *out++ = '#';
    else *out++ = *in;
    in += skip ? skip : 1;
  }
  *out = 0;
  if (!is_new(kind)) return;
  *out++ = '\n';
  syscall(SYS_write, list_to, kind, out - kind);
  syscall(SYS_kill, getpid(), SIGSTOP);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ON_PATH(type, name, declared, passed, at, path) \
  type name declared { seen(#name, at, path); return REAL(name) passed; }
#define ON_FILE(type, name, declared, passed) ON_PATH(type, name, declared, passed, fd, "")
#define OPENS(name, declared, passed, at) \
  int name declared { \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
      va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); \
    } \
    if (flags & (O_WRONLY | O_RDWR)) seen(#name, at, path); \
    return REAL(name) passed; \
  }

OPENS(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(openat, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
OPENS(openat64, (int at, const char *path, int flags, ...), (at, path, flags, mode), at)
ON_FILE(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
ON_FILE(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t o), (fd, data, n, o))
ON_FILE(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t o), (fd, data, n, o))
ON_FILE(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
ON_FILE(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t o), (fd, v, n, o))
ON_FILE(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off64_t o), (fd, v, n, o))
ON_FILE(int, fsync, (int fd), (fd))
ON_FILE(int, fdatasync, (int fd), (fd))
ON_FILE(int, ftruncate, (int fd, off_t n), (fd, n))
ON_FILE(int, ftruncate64, (int fd, off64_t n), (fd, n))
ON_PATH(int, rename, (const char *a, const char *b), (a, b), AT_FDCWD, a)
ON_PATH(int, renameat, (int at, const char *a, int bt, const char *b), (at, a, bt, b), at, a)
ON_PATH(int, renameat2, (int at, const char *a, int bt, const char *b, unsigned f),
        (at, a, bt, b, f), at, a)
ON_PATH(int, link, (const char *a, const char *b), (a, b), AT_FDCWD, b)
ON_PATH(int, unlink, (const char *path), (path), AT_FDCWD, path)
ON_PATH(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), at, path)
ON_PATH(int, rmdir, (const char *path), (path), AT_FDCWD, path)
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
ON_PATH(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), at, path)
