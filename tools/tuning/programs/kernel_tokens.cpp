// Measured kernels as train_lstm.py reads them: kernel_tokens RECORDS FILE turns the records of kernel_times into lines
// of JSON with each kernel's statements and its seconds.
#include "tools/tuning/kernel_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/files.h"
#include "tools/tuning/cost_model.h"

namespace hoist::tuning {
namespace {

// Operations and bytes, about: times are learned for a unit of it.
double work_of(const KernelTime& time) {
  const auto names = kernel_amount_names();
  const std::vector<double> amounts = kernel_numbers(time.term, time.profile).amounts;
  const auto amount = [&](std::string_view name) {
    return amounts[static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  };
  return amount("operations") + amount("bytes") / 4 + 256;
}

}  // namespace
}  // namespace hoist::tuning

int main(int count, char** arguments) {
  using namespace hoist::tuning;
  if (count < 3) {
    fmt::print(stderr, "usage: kernel_tokens RECORDS FILE\n");
    return 2;
  }
  const auto times = read_kernel_times(arguments[1]);
  if (!times) {
    for (const auto& problem : times.errors()) fmt::print(stderr, "kernel_tokens: {}\n", problem.text());
    return 3;
  }
  std::string lines = nlohmann::ordered_json{{"tokens", token_count()}}.dump() + "\n";
  for (const KernelTime& time : *times)
    lines += nlohmann::ordered_json{{"model", time.model},   {"kernel", time.kernel},
                                    {"device", time.device}, {"seconds", time.seconds},
                                    {"work", work_of(time)}, {"statements", kernel_tokens(time.term, time.profile)}}
                 .dump() +
             "\n";
  if (const auto written = hoist::write_file(arguments[2], lines); !written) {
    fmt::print(stderr, "kernel_tokens: {}\n", written.errors()[0].text());
    return 3;
  }
}
