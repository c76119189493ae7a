/* Calls that fail when a test says so. A program that is linked with -Wl,--wrap for the functions in wrapped_calls.c
 * (and wrapped_new.cpp) calls these instead of the library's wherever its own objects and static libraries do; what
 * shared libraries, an OpenCL driver above all, call among themselves is neither counted nor disturbed. That holds
 * under sanitizers and valgrind too, which a preloaded library would get in the way of. */
#ifndef HOIST_TESTS_FAULTS_H
#define HOIST_TESTS_FAULTS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fault_kind {
  FAULT_NONE,
  FAULT_MEMORY,    /* no memory */
  FAULT_FILE,      /* any call on files and folders */
  FAULT_DISK,      /* no room: what makes or fills a file */
  FAULT_SHORT,     /* a read or write of a part only, which is no failure */
  FAULT_INTERRUPT, /* a read or write that a signal interrupted, which is none either */
  FAULT_OPENCL,    /* an OpenCL call, but for those that release something */
  FAULT_KINDS
} fault_kind;

/* From now on the n-th call of this kind fails, n from 1 on, and where `lasting` is not 0 every later one too. */
void fault_arm(fault_kind kind, long n, int lasting);
/* Counting goes on and nothing fails. */
void fault_disarm(void);
/* How many calls of this kind there were since it was armed. */
long fault_calls(fault_kind kind);
/* The function that failed first since then; NULL where none did. */
const char* fault_struck(void);
/* What was asked for and not given back, by calls that are wrapped. */
long fault_live_blocks(void);
long fault_live_files(void);
long fault_live_objects(void);

const char* fault_kind_name(fault_kind kind);
fault_kind fault_kind_named(const char* name); /* FAULT_NONE where there is none */

/* For wrapped calls: counts one, and whether it is to fail. */
int fault_now(fault_kind kind, const char* function);

#ifdef __cplusplus
}
#endif

#endif
