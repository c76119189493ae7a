// A plan small enough to check by hand: two inputs, two hand-written kernels, weights, an array in the arena, one with
// a zero border. The expected result of each kernel is computed here, independently of the rest of hoist.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace hoist {

/// y[i][j] = sum over the 3x3 neighbourhood of (scale * x + w), zeros outside; shifted = scale * x + w; x is 14x14.
/// Steps: shift (into the arena), border (into a cleared 16x16), blur (into the output). A second output is the input.
Plan small_plan();

/// small_plan() with 4 MiB of further weights, which the runtime maps.
Plan large_plan();

/// y = 2 * x for [2][4] elements; the first element of x, truncated to an integer, is the actual length of each row.
Plan counted_plan();

/// y = each of three strings x followed by "!", "" and "?", joined by a host op, then in reverse order by a kernel.
Plan text_plan();

/// y[i][k] = 3 * x[i][k] + 10 * i for [batch][length] elements; the 3 is a weight that all sizes share, 10 * i a weight
/// that sizes with the same batch share.
Plan sized_plan(int64_t batch, int64_t length);

/// A loop and a branch: y = x + 1, n times, at most 4; rows are the results of the iterations, with a dynamic length; z
/// = y + 1 if c holds, else x. Inputs are x [64], n and c; outputs y, rows and z. A fifth iteration fails.
Plan controlled_plan();

/// `depth` elementwise steps over one vector of 64 floats, for timing.
Plan chain_plan(int depth);

/// chain_plan(4) with its first three steps in one launch.
Plan joined_plan();

/// States: s' = s + x, which begins as 1, 2, ..., 64, and c' = y = s' + c, which begins as zeros; y is the output, and
/// x [64] the input. `fused`: both steps in one launch.
Plan sums_plan(bool fused = false);

/// y = 3 * x for [n][4] elements as native code of x86-64-v3, where n is an open size from 1 to 8; a group computes a
/// row.
Plan open_plan();

/// The expected result of small_plan for x.
Tensor small_plan_result(const Tensor& x);

/// A temporary folder for one test.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& content);
/// Writes content with a valid size and hash in its frame, as an attacker can.
void write_sealed(const std::filesystem::path& file, std::string content);

}  // namespace hoist
