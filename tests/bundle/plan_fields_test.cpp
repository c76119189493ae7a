// Tests that the manifest contains the fields of plan.bin.
#include "backends/runtime/plan/plan_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/bundle/bundle_text.h"
#include "tests/bundle/small_plan.h"

namespace hoist {
namespace {

/// The fields by record, of all rows of the table.
std::vector<std::pair<std::string, std::string>> all_fields() {
  std::vector<std::pair<std::string, std::string>> out;
#define HOIST_NAME(kind, name) out.emplace_back(record, #name);
#define HOIST_NAME_LIST(kind, name, number) out.emplace_back(record, #name);
#define HOIST_NAME_OTHERS(kind, bytes) out.emplace_back(record, #kind);
#define HOIST_NAME_RECORD(kind, FIELDS) \
  record = #kind;                       \
  FIELDS(HOIST_NAME, HOIST_NAME_LIST, HOIST_NAME_OTHERS)
  const char* record = "plan";
  HOIST_PLAN_FIELDS(HOIST_NAME, HOIST_NAME_LIST, HOIST_NAME_OTHERS)
  HOIST_PLAN_RECORDS(HOIST_NAME_RECORD, HOIST_NAME_RECORD)
  return out;
}

/// A plan whose input is an image, complete enough for a manifest.
Plan plan_with_image() {
  Plan plan;
  plan.arrays.push_back({"x", Scalar::f32, {1, 8, 6, 3}, Place::input, 0, {}});
  plan.inputs = {0};
  plan.preprocessing.push_back({});
  plan.preprocessing[0].resize_columns = 8;
  return plan;
}

/// The manifests of plans that have every kind of record.
std::string manifests() {
  Plan serial = joined_plan();
  serial.is_serial = true;
  serial.targets = {"x86-64-v3"};
  Plan controlled = controlled_plan();
  controlled.controls[0].number = 3;
  controlled.controls[0].next = 6;
  const Plan first = sized_plan(1, 4), second = sized_plan(2, 4);
  const std::vector<ListedPlan> listed = {{{{"batch", 1}}, &first}, {{{"batch", 2}}, &second}};
  std::string out = manifest_text(first, kernels_text(first), expressions_text(first), listed);
  for (const Plan& plan :
       {small_plan(), counted_plan(), text_plan(), sums_plan(), controlled, serial, plan_with_image(), open_plan()})
    out += manifest_text(plan, kernels_text(plan), expressions_text(plan), {});
  return out;
}

TEST(PlanFields, AreInTheManifestOrLeftOutOnPurpose) {
  const std::map<std::pair<std::string, std::string>, std::string> other_keys = {
      {{"array", "scalar"}, "type"},
      {{"parameter", "scalar"}, "type"},
      {{"move", "is_row"}, "row"},
      {{"control", "is_loop"}, "kind"},
      {{"launch", "first"}, "first_step"},
      {{"launch", "count"}, "steps"},
      // Written by hand.
      {{"plan", "model_name"}, "model"},
      {{"plan", "model_hash"}, "hash"},
      {{"plan", "made_for"}, "profile"},
      {{"plan", "model_output_count"}, "outputs"},
      {{"plan", "size_names"}, "sizes"},
      {{"made_for", "is_cpu"}, "profile"},
      {{"made_for", "is_serial"}, "serial"},
      {{"item", "kind"}, "items"},
      {{"item", "index"}, "items"},
      {{"input", "array"}, "inputs"},
      {{"specialisation", "sizes_and_shapes"}, "shape"},
      {{"pixels", "channels_first"}, "layout"},
      {{"pixels", "blue_first"}, "colours"},
      {{"pixels", "resize_rows"}, "resize"},
      {{"pixels", "resize_columns"}, "resize"},
      {{"pixels", "deviation"}, "std"},
      // Left out: "".
      {{"plan", "weights_bytes"}, ""},
      {{"plan", "files"}, ""},
      {{"plan", "strings"}, ""},
      {{"listed_file", "path"}, ""},
      {{"listed_file", "bytes"}, ""},
      {{"listed_file", "hash"}, ""},
      {{"saved_state", "scalar"}, ""},
      {{"input", "low"}, ""},
      {{"input", "high"}, ""},
  };
  const std::string text = manifests();
  size_t named = 0;
  for (const auto& [record, field] : all_fields()) {
    const auto other = other_keys.find({record, field});
    const std::string key = other != other_keys.end() ? other->second : field;
    if (key.empty()) continue;
    EXPECT_NE(text.find("\"" + key + "\":"), std::string::npos) << record << "." << field;
    ++named;
  }
  EXPECT_GT(named, 60u);
}

}  // namespace
}  // namespace hoist
