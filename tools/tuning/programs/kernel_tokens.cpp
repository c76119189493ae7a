// Converts measured kernels for train_lstm.py: kernel_tokens RECORDS FILE turns the records of kernel_times into lines
// of JSON with each kernel's statements, amounts and features (../cost_model.h) and its seconds.
#include "tools/tuning/model/kernel_tokens.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/base/files.h"
#include "tools/tuning/model/cost_model.h"

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
  for (const KernelTime& time : *times) {
    const KernelNumbers numbers = kernel_numbers(time.term, time.profile, time.circumstances);
    lines +=
        nlohmann::ordered_json{
            {"model", time.model},          {"kernel", time.kernel},
            {"device", time.device},        {"native", numbers.native},
            {"seconds", time.seconds},      {"amounts", numbers.amounts},
            {"features", numbers.features}, {"statements", kernel_tokens(time.term, time.profile, time.circumstances)}}
            .dump() +
        "\n";
  }
  if (const auto written = hoist::write_file(arguments[2], lines); !written) {
    fmt::print(stderr, "kernel_tokens: {}\n", written.errors()[0].text());
    return 3;
  }
}
