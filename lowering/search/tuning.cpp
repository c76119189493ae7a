#include "lowering/search/tuning.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cctype>
#include <charconv>
#include <map>

#include "ir/text/text.h"
#include "lowering/terms/terms.h"
#include "lowering/tiling/tile.h"

namespace hoist {

TuningTask tuning_task(Expr term) {
  const std::string all = print(with_numbered_parameters(term));
  TuningTask out;
  std::string structure;
  for (size_t i = 0; i < all.size();) {
    // Digits inside a name (f32, p0, %x2) belong to the name.
    const bool begins = std::isdigit(static_cast<unsigned char>(all[i])) != 0 &&
                        (i == 0 || (std::isalnum(static_cast<unsigned char>(all[i - 1])) == 0 && all[i - 1] != '_'));
    int64_t number = 0;
    const auto parsed = begins ? std::from_chars(all.data() + i, all.data() + all.size(), number)
                               : std::from_chars_result{all.data() + i, std::errc::invalid_argument};
    if (parsed.ec != std::errc()) {
      structure += all[i++];
      continue;
    }
    out.numbers.push_back(number);
    structure += '#';
    i = static_cast<size_t>(parsed.ptr - all.data());
  }
  const XXH128_hash_t hash = XXH3_128bits(structure.data(), structure.size());
  out.structure = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  return out;
}

std::string present_knob_name(const std::string& recorded) {
  return recorded == "columns_around" ? order_knob : recorded;
}

void take_knobs(Program& program, Definition& definition, const KnobValues& knobs) {
  ProgramStep step = replayed_step("choose-knobs", definition);
  for (const auto& [name, value] : knobs) step.parameters[name] = std::to_string(value);
  definition.knobs = knobs;
  program.steps.push_back(std::move(step));
}

namespace {

constexpr int64_t most_knob_value = 1'000'000'000'000;

}  // namespace

void choose_knobs(Program& program, const TuningRecords& records) {
  if (!records) return;
  for (Definition& definition : program.definitions) {
    KnobValues knobs = records(tuning_task(definition.expression));
    // Records are untrusted input: values outside the range of every knob are ignored, since a derivation cannot state
    // them.
    std::erase_if(knobs, [](const auto& knob) { return knob.second < 0 || knob.second > most_knob_value; });
    if (!knobs.empty()) take_knobs(program, definition, knobs);
  }
}

}  // namespace hoist
