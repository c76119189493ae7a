// A synthetic study of a small residual network: about 25 sites with up to six candidates, twelve points, program and
// code of every layer. Deterministic; for tests of the output of studies.
#pragma once

#include <vector>

#include "ir/program/program_builder.h"
#include "tools/report/report.h"

namespace hoist {

struct SyntheticStudy {
  std::vector<NamedCall> network;
  Study study;
  std::vector<ReportLayer> layers;
};

SyntheticStudy synthetic_study();

}  // namespace hoist
