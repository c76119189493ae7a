// A plan small enough to check by hand: two inputs, two hand-written kernels, weights, an array in the arena, one with
// a border of zeros. What each kernel should give is computed here, so that nothing else of hoist is needed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace hoist {

/// y[i][j] = sum over the 3x3 neighbourhood of (scale * x + w), zeros outside; shifted = scale * x + w; x is 14x14.
/// Steps: shift (into the arena), border (into a cleared 16x16), blur (into the output). A second output is the input.
Plan small_plan();

/// y = 2 * x over [2][4] numbers, of which the first one of x, cut to a whole number, says how many of each row count.
Plan counted_plan();

/// y = each of three strings x with "!", "" and "?" behind it, joined on the host, and then in reverse order by a
/// kernel.
Plan text_plan();

/// y[i][k] = 3 * x[i][k] + 10 * i over [batch][length] numbers; the 3 is a weight that all of them have, 10 * i one
/// that those of one batch have.
Plan sized_plan(int64_t batch, int64_t length);

/// A loop and a branch: y = x + 1, n times, at most 4; rows are what each of them gives, as many as count; z = y + 1 if
/// c holds, else x. Inputs are x [64], n and c; outputs y, rows and z. A fifth iteration fails.
Plan controlled_plan();

/// `depth` elementwise steps over one vector of 64 floats, for timing.
Plan chain_plan(int depth);

/// chain_plan(4), whose first three steps are one launch.
Plan joined_plan();

/// What small_plan gives for x.
Tensor small_plan_result(const Tensor& x);

/// A folder of its own for one test, removed at the end.
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
/// The same with the right size and hash in the frame of the content, as a stranger writes it who can compute hashes.
void write_sealed(const std::filesystem::path& file, std::string content);

}  // namespace hoist
