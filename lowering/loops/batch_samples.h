// The definitions of a program that compute the samples of a batch separately, and the same definitions over fewer
// samples. A definition counts only if that is proved (lowering/terms/batch_axis.h). For the pass micro-batches.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "lowering/terms/batch_axis.h"

namespace hoist {

/// The number of samples: the first extent of the model's inputs of more than one dimension, if they agree in it; 0 if
/// they do not, or if there is no batch.
int64_t samples_of(const Program& program);

class BatchSamples {
 public:
  /// A definition over some of the samples. Parameters that are divided have the types of that number of samples.
  struct Part {
    Expr term = nullptr;
    std::vector<BatchAxis> axes;         ///< of the result, or of each component of a tuple
    std::vector<std::string> constants;  ///< constants that repeat one value for each sample, and are divided too
    double products = 0;                 ///< steps of sums; 0: its elements are no sums, so that consumers compute them
  };

  BatchSamples(const Program& program, int64_t samples);

  int64_t samples() const { return samples_; }
  /// The definition over this number of samples, which divides the number of samples; none if it is not proved.
  /// Definitions are asked for in order, for one number each.
  std::optional<Part> part_of(const Definition& definition, int64_t in_part);
  /// True if the value has samples.
  bool has_samples(const std::string& value) const { return axes_.count(value) != 0; }
  const std::vector<BatchAxis>& axes_of(const std::string& value) const { return axes_.at(value); }
  /// The value's type over fewer samples.
  Type part_type(const std::string& value, int64_t in_part) const;
  /// The first samples of a constant that repeats one value for each.
  Tensor first_samples(const std::string& constant, int64_t in_part) const;

 private:
  struct Terms;
  bool repeats(const std::string& constant) const;
  bool is_proved(Expr whole, Expr inlined, const std::map<std::string, BatchAxis>& operands, int64_t in_part,
                 Part& part) const;

  const Program& program_;
  const int64_t samples_;
  std::map<std::string, std::vector<BatchAxis>> axes_;
  std::map<std::string, Type> types_;
};

}  // namespace hoist
