#include <cctype>

#include "lowering/plan/rows.h"

namespace hoist {
namespace {

// Reserved words of OpenCL C, which no kernel can have as its name: keywords, and functions without a digit or an
// underscore.
bool is_reserved(const std::string& name) {
  static const std::set<std::string> words = {
      "abs",      "acos",      "acosh",    "acospi",   "all",        "any",       "asin",    "asinh",     "asinpi",
      "atan",     "atanh",     "atanpi",   "auto",     "barrier",    "bitselect", "bool",    "break",     "case",
      "cbrt",     "ceil",      "char",     "clamp",    "clz",        "complex",   "const",   "constant",  "continue",
      "copysign", "cos",       "cosh",     "cospi",    "cross",      "ctz",       "default", "degrees",   "distance",
      "do",       "dot",       "double",   "else",     "enum",       "erf",       "erfc",    "exp",       "extern",
      "fabs",     "fdim",      "float",    "floor",    "fma",        "fmax",      "fmin",    "fmod",      "for",
      "fract",    "frexp",     "global",   "goto",     "hadd",       "half",      "hypot",   "if",        "ilogb",
      "inline",   "int",       "isequal",  "isfinite", "isgreater",  "isinf",     "isless",  "isnan",     "isnormal",
      "kernel",   "ldexp",     "length",   "lgamma",   "local",      "log",       "logb",    "long",      "mad",
      "max",      "maxmag",    "min",      "minmag",   "mix",        "modf",      "nan",     "nextafter", "normalize",
      "pipe",     "popcount",  "pow",      "pown",     "powr",       "prefetch",  "printf",  "private",   "radians",
      "register", "remainder", "remquo",   "restrict", "return",     "rhadd",     "rint",    "rootn",     "rotate",
      "round",    "rsqrt",     "select",   "short",    "shuffle",    "sign",      "signbit", "signed",    "sin",
      "sincos",   "sinh",      "sinpi",    "sizeof",   "smoothstep", "sqrt",      "static",  "step",      "struct",
      "switch",   "tan",       "tanh",     "tanpi",    "tgamma",     "trunc",     "typedef", "uchar",     "uint",
      "uniform",  "union",     "unsigned", "upsample", "ushort",     "vec",       "void",    "volatile",  "while"};
  return words.count(name) != 0;
}

}  // namespace

std::string FunctionNames::make(const std::string& layer) {
  std::string name;
  for (char c : layer) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "layer_" + name;
  if (is_reserved(name) || name.starts_with("hoist_")) name = "layer_" + name;  // the prefix of hoist's own functions
  if (name.size() > 60) name.resize(60);
  std::string unique = name;
  for (int& i = next_.try_emplace(name, 2).first->second; !used_.insert(unique).second; ++i)
    unique = name + "_" + std::to_string(i);
  return unique;
}

}  // namespace hoist
