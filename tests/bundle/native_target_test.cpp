// Tests which native targets a process may run.
#include <gtest/gtest.h>

#include "backends/runtime/hoist_runtime.h"

#if defined(__linux__) && defined(__x86_64__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace hoist {
namespace {

// Makes the system refuse this process the registers that must be requested, as the filters of some containers do.
bool refuse_registers() {
  constexpr unsigned ask_for_state = 0x1023;
  std::array<sock_filter, 6> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ask_for_state, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter = {program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(NativeTarget, IsOneThatTheSystemAllows) {
  if (hoist_runs_target("sapphirerapids") == 0) GTEST_SKIP() << "not such a processor";
  EXPECT_EXIT(
      {
        if (!refuse_registers()) std::exit(2);
        std::exit(hoist_runs_target("sapphirerapids") == 0 && hoist_runs_target("x86-64-v4") != 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hoist
#endif
