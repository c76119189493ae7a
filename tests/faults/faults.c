#include "tests/faults/faults.h"

#include <stddef.h>
#include <string.h>

static const char* const names[FAULT_KINDS] = {"none", "memory", "file", "disk", "short", "interrupt", "opencl"};

/* Other threads of the program may call while one thread arms a fault. */
static int armed_kind, armed_lasting;
static long armed_call;
static long calls[FAULT_KINDS];
static const char* struck;

void fault_arm(fault_kind kind, long n, int lasting) {
  fault_disarm();
  for (int k = 0; k < FAULT_KINDS; ++k) __atomic_store_n(&calls[k], 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&struck, NULL, __ATOMIC_SEQ_CST);
  __atomic_store_n(&armed_call, n, __ATOMIC_SEQ_CST);
  __atomic_store_n(&armed_lasting, lasting, __ATOMIC_SEQ_CST);
  __atomic_store_n(&armed_kind, (int)kind, __ATOMIC_SEQ_CST);
}

void fault_disarm(void) { __atomic_store_n(&armed_kind, FAULT_NONE, __ATOMIC_SEQ_CST); }
long fault_calls(fault_kind kind) { return __atomic_load_n(&calls[kind], __ATOMIC_SEQ_CST); }
const char* fault_struck(void) { return __atomic_load_n(&struck, __ATOMIC_SEQ_CST); }
const char* fault_kind_name(fault_kind kind) { return names[kind]; }

fault_kind fault_kind_named(const char* name) {
  for (int k = 1; k < FAULT_KINDS; ++k) {
    if (strcmp(names[k], name) == 0) return (fault_kind)k;
  }
  return FAULT_NONE;
}

int fault_now(fault_kind kind, const char* function) {
  const long call = __atomic_add_fetch(&calls[kind], 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&armed_kind, __ATOMIC_SEQ_CST) != (int)kind) return 0;
  const long wanted = __atomic_load_n(&armed_call, __ATOMIC_SEQ_CST);
  if (call != wanted && !(call > wanted && __atomic_load_n(&armed_lasting, __ATOMIC_SEQ_CST))) return 0;
  if (call == wanted) __atomic_store_n(&struck, function, __ATOMIC_SEQ_CST);
  return 1;
}
