// The functions of the OpenCL preamble as Halide terms for native code, with the same bits as the preamble's exact
// functions (defined in preamble.cpp and ir/evaluate/scalar_math.h). Arguments and results are scalars or vectors.
//
// Target::StrictFloat is set, so comparisons respect NaN and nothing is reassociated or contracted.
//
// LLVM's functions are called scalar by scalar; its optimiser recombines the calls of a vector. Halide has no interface
// for vector calls.
#include <cmath>
#include <functional>

#include "backends/halide/native/functions/terms.h"
#include "backends/halide/passes/passes.h"

namespace hoist::emission {
namespace native {
namespace {

HExpr word(const Arguments& numbers) {
  HExpr out;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int size = numbers[i].type().bits(), all = size * static_cast<int>(numbers.size());
    const HExpr wide = to(Halide::UInt(all), bits(Halide::UInt(size), numbers[i]));
    const HExpr placed = wide << count(wide, static_cast<int64_t>(size * i));
    out = out.defined() ? out | placed : placed;
  }
  return bits(Halide::Int(out.type().bits()), out);
}

// s + the products of the unsigned bytes of x and the signed bytes of y, in the form that Halide maps to a dot
// instruction.
HExpr dot_in_instruction(const HExpr& s, const HExpr& x, const HExpr& y) {
  using Halide::Internal::Reinterpret;
  using Halide::Internal::VectorReduce;
  const int bytes = 4 * s.type().lanes();
  const HExpr a = Reinterpret::make(Halide::UInt(8, bytes), x), b = Reinterpret::make(Halide::Int(8, bytes), y);
  const HExpr products = Call::make(Halide::Int(16, bytes), Call::widening_mul, {a, b}, Call::PureIntrinsic);
  return s + VectorReduce::make(VectorReduce::Add, to(Halide::Int(32), products), s.type().lanes());
}

// Sums of two products each, of adjacent 16-bit integers.
HExpr sums_of_pairs(const HExpr& left, const HExpr& right) {
  using Halide::Internal::Reinterpret;
  using Halide::Internal::VectorReduce;
  const int numbers = left.type().bits() * left.type().lanes() / 16;
  const Type halves = Halide::Int(16, numbers);
  const HExpr products =
      Call::make(Halide::Int(32, numbers), Call::widening_mul,
                 {Reinterpret::make(halves, left), Reinterpret::make(halves, right)}, Call::PureIntrinsic);
  return bits(Halide::UInt(32), VectorReduce::make(VectorReduce::Add, products, numbers / 2));
}

// y may be two signed bytes.
HExpr dot_of_pairs(const HExpr& s, const HExpr& x, const HExpr& y) {
  using Halide::Internal::Reinterpret;
  const int numbers = 2 * s.type().lanes();
  const HExpr wide =
      y.type().bits() == 32
          ? y
          : Reinterpret::make(x.type(), to(Halide::Int(16), Reinterpret::make(Halide::Int(8, numbers), y)));
  return bits(Halide::Int(32), bits(Halide::UInt(32), s) + sums_of_pairs(x, wide));
}

// Products of bytes in pairs of 16 bits, which are exact.
HExpr dot_in_pairs(const HExpr& s, const HExpr& x, const HExpr& y) {
  const int lanes = s.type().lanes();
  const HExpr a = Halide::Internal::Reinterpret::make(Halide::UInt(16, 2 * lanes), x);
  const HExpr b = Halide::Internal::Reinterpret::make(Halide::Int(16, 2 * lanes), y);
  const HExpr even = sums_of_pairs(a & integer(a, 255), (b << count(b, 8)) >> count(b, 8));
  const HExpr odd = sums_of_pairs(a >> count(a, 8), b >> count(b, 8));
  return bits(Halide::Int(32), bits(Halide::UInt(32), s) + (even + odd));
}

// The first or second element of words of two bf16.
HExpr first_bf16(const HExpr& word) { return bits(Halide::Float(32), word << count(word, 16)); }
HExpr second_bf16(const HExpr& word) { return bits(Halide::Float(32), word & integer(word, -0x10000)); }

const Meanings& meanings() {
  static const Meanings table = [] {
    Meanings t;
    add_arithmetic(t);
    add_elementary_functions(t);
    add_conversions(t);
    t["hoist_first"] = [](const Arguments& x) { return x[0]; };
    t["hoist_is_nan"] = [](const Arguments& x) { return one_or_zero(!is_number(x[0])); };
    t["hoist_is_infinite"] = [](const Arguments& x) {
      return one_or_zero(magnitude(x[0]) == constant(x[0], INFINITY));
    };
    t["hoist_less"] = [](const Arguments& x) { return one_or_zero(x[0] < x[1]); };
    // Halide compiles a <= b as !(b < a), which is true for NaN.
    t["hoist_less_equal"] = [](const Arguments& x) { return one_or_zero(x[0] < x[1] || x[0] == x[1]); };
    t["hoist_equal"] = [](const Arguments& x) { return one_or_zero(x[0] == x[1]); };
    t["hoist_not_equal"] = [](const Arguments& x) { return one_or_zero(!(x[0] == x[1])); };
    t["fma"] = [](const Arguments& x) { return fma(x[0], x[1], x[2]); };
    t["fabs"] = [](const Arguments& x) { return magnitude(x[0]); };
    for (const char* name : {"floor", "ceil", "trunc", "sqrt"})
      t[name] = [name](const Arguments& x) { return of_llvm(name, x); };
    t["rint"] = [](const Arguments& x) { return of_llvm("nearbyint", x); };
    for (const char* name : {"pow", "sinh", "cosh", "asinh", "acosh", "atanh"})
      t[name] = [name](const Arguments& x) { return of_library(name, x); };
    for (const char* name : {"sin", "cos", "tan"})
      t[std::string("hoist_") + name] = [name](const Arguments& x) { return of_library(name, x); };
    t[word_marker] = word;
    t["hoist_dot"] = [](const Arguments& x) { return dot_in_pairs(x[0], x[1], x[2]); };
    t["hoist_dot_pairs"] = [](const Arguments& x) { return dot_of_pairs(x[0], x[1], x[2]); };
    t[add_first_product] = [](const Arguments& x) { return fma(first_bf16(x[1]), first_bf16(x[2]), x[0]); };
    t[add_second_product] = [](const Arguments& x) { return fma(second_bf16(x[1]), second_bf16(x[2]), x[0]); };
    t[add_two_sums] = [](const Arguments& x) { return x[0] + (x[1] + x[2]); };
    return t;
  }();
  return table;
}

class Replace : public Halide::Internal::IRMutator {
 public:
  explicit Replace(const NativeTarget& target) : dot_in_instruction_(target.dot_in_instruction) {}

 private:
  using IRMutator::visit;

  HExpr visit(const Call* op) override {
    const auto found = op->call_type == Call::PureExtern ? meanings().find(op->name) : meanings().end();
    if (found == meanings().end()) return IRMutator::visit(op);
    Arguments arguments;
    std::vector<std::pair<std::string, HExpr>> named;
    for (const HExpr& argument : op->args) {
      HExpr value = mutate(argument);
      if (!Halide::Internal::is_const(value) && value.as<Halide::Internal::Variable>() == nullptr) {
        named.emplace_back(Halide::Internal::unique_name("v"), value);
        value = Halide::Internal::Variable::make(value.type(), named.back().first);
      }
      arguments.push_back(value);
    }
    // The instruction has at least four lanes.
    const bool in_instruction = op->name == "hoist_dot" && dot_in_instruction_ && op->type.lanes() >= 4;
    HExpr out =
        in_instruction ? dot_in_instruction(arguments[0], arguments[1], arguments[2]) : found->second(arguments);
    HOIST_CHECK(out.type() == op->type, "native code gives another type for " + op->name);
    while (!named.empty()) {
      out = Halide::Internal::Let::make(named.back().first, named.back().second, out);
      named.pop_back();
    }
    return out;
  }

  bool dot_in_instruction_;
};

}  // namespace
}  // namespace native

MadePass native_functions(const PassInput& input) { return std::make_unique<native::Replace>(*input.native); }

}  // namespace hoist::emission
