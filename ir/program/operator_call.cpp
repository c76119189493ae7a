#include "ir/program/operator_call.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "ir/base/hash.h"
#include "ir/program/program.h"

namespace hoist {
namespace {

uint64_t hash_of(int64_t value) { return static_cast<uint64_t>(value); }
uint64_t hash_of(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t hash_of(const std::string& value) { return XXH3_64bits(value.data(), value.size()); }
uint64_t hash_of(const Tensor& value) { return XXH3_64bits(value.data(), value.bytes().size()); }
uint64_t hash_of(const Body& value) { return value.program == nullptr ? 0 : value.program->definitions.size(); }

template <class T>
uint64_t hash_of(const std::vector<T>& values) {
  uint64_t h = values.size();
  for (const T& value : values) h = mixed(h, hash_of(value));
  return h;
}

}  // namespace

bool Body::operator==(const Body& other) const {
  if (program == other.program) return true;
  return program != nullptr && other.program != nullptr && same_program(*program, *other.program);
}

uint64_t OperatorCall::hash() const {
  uint64_t h = mixed(hash_of(domain), hash_of(name));
  h = mixed(h, static_cast<uint64_t>(version));
  h = mixed(h, static_cast<uint64_t>(results));
  h = mixed(h, hash_of(operands));
  for (const auto& [key, attribute] : attributes) {
    h = mixed(h, hash_of(key));
    h = mixed(h, std::visit([](const auto& value) { return hash_of(value); }, attribute));
  }
  return h;
}

bool has_body(const OperatorCall& call) {
  return std::any_of(call.attributes.begin(), call.attributes.end(),
                     [](const auto& entry) { return std::holds_alternative<Body>(entry.second); });
}

std::string full_name(const std::string& domain, const std::string& name) {
  return domain.empty() ? name : domain + "." + name;
}
std::string full_name(const OperatorCall& call) { return full_name(call.domain, call.name); }

}  // namespace hoist
