// Measures how well the cost model predicts kernels of unseen networks, leaving out one network at a time:
// cost_model_quality RECORDS [PREDICTIONS [MODEL]], with RECORDS from kernel_times. PREDICTIONS receives a line of JSON
// per record, MODEL the model fitted to all of them. The last lines rate the shipped models on these records; for a
// device without training data this is a held-out test too.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tools/base/files.h"
#include "tools/tuning/model/cost_model.h"

namespace hoist::tuning {
namespace {

void print_row(const std::string& name, const std::vector<KernelTime>& times,
               const std::vector<std::optional<double>>& predicted) {
  const CostModelQuality quality = quality_of(times, predicted);
  fmt::print("| {} | {} | {} | {:.1f} % | {:.1f} % | {:.3f} | {} | {:.1f} % |\n", name, quality.kernels,
             quality.outside, 100 * quality.mean_error, 100 * quality.median_error, quality.rank_correlation,
             quality.pairs, 100 * quality.ordered_pairs);
}

}  // namespace
}  // namespace hoist::tuning

int main(int count, char** arguments) {
  using namespace hoist::tuning;
  if (count < 2) {
    fmt::print(stderr, "usage: cost_model_quality RECORDS [PREDICTIONS [MODEL]]\n");
    return 2;
  }
  const auto times = read_kernel_times(arguments[1]);
  if (!times) {
    for (const auto& problem : times.errors()) fmt::print(stderr, "cost_model_quality: {}\n", problem.text());
    return 3;
  }
  const auto predicted = held_out_predictions(*times, times->size());
  fmt::print("| | kernels | outside | mean error | median error | Spearman | pairs | in order |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  print_row("all", *times, predicted);
  const auto print_part = [&](const std::string& name, const auto& belongs) {
    std::vector<KernelTime> part;
    std::vector<std::optional<double>> of_part;
    for (size_t i = 0; i < times->size(); ++i)
      if (belongs((*times)[i])) part.push_back((*times)[i]), of_part.push_back(predicted[i]);
    if (!part.empty()) print_row(name, part, of_part);
  };
  const auto print_between = [&](const std::string& name, double least, double most) {
    print_part(name, [&](const KernelTime& time) { return time.seconds >= least && time.seconds < most; });
  };
  print_between("below 1 us", 0, 1e-6);
  print_between("1 to 10 us", 1e-6, 1e-5);
  print_between("10 to 100 us", 1e-5, 1e-4);
  print_between("0.1 ms and more", 1e-4, 1e9);
  std::map<std::string, int> models;
  for (const KernelTime& time : *times) ++models[time.model];
  for (const auto& counted : models)
    print_part(counted.first, [&](const KernelTime& time) { return time.model == counted.first; });
  std::map<std::string, std::vector<KernelTime>> devices;
  for (const KernelTime& time : *times) devices[time.device].push_back(time);
  for (const auto& [device, of_device] : devices) {
    for (const CostModel& model : CostModel::shipped()) {
      std::vector<std::optional<double>> said;
      for (const KernelTime& time : of_device)
        said.push_back(model.seconds(time.term, time.profile, time.circumstances));
      const std::string& source = model.learned_from().front();
      print_row(fmt::format("{}, the model that hoist ships for {}", device, source.substr(0, source.find(" ("))),
                of_device, said);
    }
  }
  std::string lines;
  for (size_t i = 0; i < times->size(); ++i)
    lines += nlohmann::ordered_json{{"model", (*times)[i].model},
                                    {"kernel", (*times)[i].kernel},
                                    {"seconds", (*times)[i].seconds},
                                    {"predicted", predicted[i] ? nlohmann::ordered_json(*predicted[i]) : nullptr}}
                 .dump() +
             "\n";
  for (int i = 2; i < std::min(count, 4); ++i)
    if (const auto written = hoist::write_file(arguments[i], i == 2 ? lines : CostModel::fit(*times).save());
        !written) {
      fmt::print(stderr, "cost_model_quality: {}\n", written.errors()[0].text());
      return 3;
    }
}
