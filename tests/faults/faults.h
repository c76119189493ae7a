/* Calls that fail on request of a test. A program that is linked with -Wl,--wrap for the functions in
 * wrapped_calls.c (and wrapped_new.cpp) calls these in its own objects and static libraries; calls inside shared
 * libraries, in particular an OpenCL driver, are neither counted nor changed. This also works under sanitizers and
 * valgrind, which conflict with preloaded libraries. */
#ifndef HOIST_TESTS_FAULTS_H
#define HOIST_TESTS_FAULTS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fault_kind {
  FAULT_NONE,
  FAULT_MEMORY,    /* no memory */
  FAULT_FILE,      /* any call on files and folders */
  FAULT_DISK,      /* no disk space: calls that make or fill a file */
  FAULT_SHORT,     /* a partial read or write, which is not an error */
  FAULT_INTERRUPT, /* a read or write interrupted by a signal, which is not an error */
  FAULT_OPENCL,    /* an OpenCL call, except releases */
  FAULT_KINDS
} fault_kind;

/* Makes the n-th following call of this kind fail, counting from 1, and with `lasting` every later one too. */
void fault_arm(fault_kind kind, long n, int lasting);
/* Keeps counting without faults. */
void fault_disarm(void);
/* The number of calls of this kind since it was armed. */
long fault_calls(fault_kind kind);
/* The first function that failed since then; NULL if none did. */
const char* fault_struck(void);
/* The resources that wrapped calls have acquired and not released. */
long fault_live_blocks(void);
long fault_live_files(void);
long fault_live_objects(void);

const char* fault_kind_name(fault_kind kind);
fault_kind fault_kind_named(const char* name); /* FAULT_NONE if the name is unknown */

/* For wrapped calls: counts the call and returns true if it must fail. */
int fault_now(fault_kind kind, const char* function);

#ifdef __cplusplus
}
#endif

#endif
